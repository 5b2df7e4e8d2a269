"""What two sentences say differently, whatever they are made of."""

import time

from explorer.text.differences import changes_between, compare

LONG = (
    "北京时间八月十日上午，负责这一项目的工程师{name}在接受采访时表示，新建的大桥将于明年春天开始通车，"
    "届时两岸居民往返的路程会缩短约三分之一，沿线的学校、医院和市场也将因此受益，而原有渡船仍会保留一段日子。"
)


def test_a_name_in_a_long_chinese_sentence_is_compared() -> None:
    """The characters of such a sentence are mostly different ones."""
    found = changes_between(LONG.format(name="张伟明"), LONG.format(name="张伟强"))
    assert [str(change) for change in found] == ["张伟明 → 张伟强"]


def test_repeated_characters_take_no_time() -> None:
    """A page of few different characters is stored as quickly as any other of its length."""
    began = time.process_time()
    assert changes_between("百分之" * 700, "之分百" * 700) == ()
    pages = ("。".join(f"{text * 98}{number}" for number in range(79)) for text in ("百分之", "之分百"))
    assert compare(*pages).changes == ()
    assert time.process_time() - began < 5
