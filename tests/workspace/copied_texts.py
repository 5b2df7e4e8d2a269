"""Texts and their copies, faithful and altered, in English and Chinese."""

ARTICLE = """# Harbour plant has a good May

The harbour plant fed 12 % more power into the grid in May than a year before, said Alice Keller, who leads it.
In all it came to 4,300 megawatt hours, which is what 1,400 households use in a year.
The old battery was replaced on 3 June 2026 after it had lost a third of its capacity in two winters.

The new one cost $2.4 million and was built by Norden Cells, a company from the same town.
Its makers promise 6,000 cycles before it falls below eighty percent of what it holds today.
Nobody at the plant wanted to say how far that promise can be trusted, but Ms Keller called it a bet worth making.
The town council will vote in autumn on whether a second field of panels is built behind the old shipyard.
"""

ARTICLE_ZH = """港口电站五月成绩良好

港口电站五月向电网输送的电量比去年同期增长了十二个百分点，负责人张小明在记者会上表示满意。
全月总发电量达到4300兆瓦时，相当于1400户家庭一年的用电量。
旧电池已于六月三日更换，此前两个冬天里它失去了三分之一的容量。
新电池耗资240万元，由本地企业制造，厂家承诺可以充放电六千次。
电站里没有人愿意说这个承诺有多可靠，但张小明称这是一次值得的冒险。
市议会将在秋天表决，是否在旧船厂后面再建一片光伏板。
"""

OTHER_ARTICLE = """# Library opens on Sundays

From the first week of July the town library is open on Sundays too, from ten to four, with half of its staff.
Readers had asked for it for years; a survey of 900 of them found that most would give up Monday mornings instead.
The librarian, Bob Marsh, doubts that many will come while the beach is warm, and wants to count them until winter.
Books can be returned at any hour through the new hatch beside the door, which was paid for by a bequest.
"""

FRAME = """Harbour Courier | Home | Town | Sport | Weather | Subscribe for 3 euros a week, read without advertising
{body}
Read next: the ten best walks along the quay. Share this article with your friends by mail or on any network you like.
The Harbour Courier is printed by Quay Press, 12 Rope Lane. All rights reserved. Letters are welcome at any time.
"""


def altered(text: str, *pairs: tuple[str, str]) -> str:
    """A copy in which some words are others."""
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text
