"""Files given with a question: PDF and HTML become text that agents read, and one source each."""

import os
from pathlib import Path

import pytest
import yaml

from documents.corpus.stage import CountingParser, pdf
from explorer.documents.corpus.reading import input_drafts, parsed_texts, read_inputs, usable_name
from explorer.schema.errors import ConfigError
from explorer.workspace.access import is_path


async def test_a_pdf_is_text_beside_its_original(tmp_path: Path) -> None:
    """A PDF's text gets a file of its own, whose source names the PDF; plain texts stay as they are."""
    (tmp_path / "tide.pdf").write_bytes(pdf("The tide rose by 3.4 metres.", title="On tides"))
    (tmp_path / "notes.md").write_text("# Notes\n\n  as they are  \n")
    inputs = read_inputs([tmp_path / "tide.pdf", tmp_path / "notes.md"])
    texts = await parsed_texts(inputs, CountingParser())
    assert texts["notes.md"] == "# Notes\n\n  as they are  \n"
    assert yaml.safe_load(texts["tide.pdf.md"].split("---\n")[1])["original"] == "tide.pdf"
    files = {f"inputs/{name}": text for name, text in texts.items()}
    drafts = input_drafts(["inputs/notes.md", "inputs/tide.pdf", "inputs/tide.pdf.md"], files.__getitem__)
    assert list(drafts) == ["inputs/notes.md", "inputs/tide.pdf.md"]
    tide = drafts["inputs/tide.pdf.md"]
    assert (tide.url, tide.title) == ("file:inputs/tide.pdf", "On tides")
    assert tide.text.strip() == "[page 1]\nThe tide rose by 3.4 metres."
    assert (drafts["inputs/notes.md"].url, drafts["inputs/notes.md"].text) == (
        "file:inputs/notes.md",
        texts["notes.md"],
    )


@pytest.mark.slow
async def test_names_never_meet(tmp_path: Path) -> None:
    """Files of one name, and a text that is called like a parsed one, all keep their content."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.html").write_text(
            f"<html><body><p>{'Words of ' + folder + '. '} </p></body></html>" * 9
        )
    (tmp_path / "a.html.md").write_text("mine")
    given = [tmp_path / "a.html.md", tmp_path / "one" / "a.html", tmp_path / "two" / "a.html"]
    inputs = read_inputs(given)
    assert [one.name for one in inputs] == ["a.html.md", "2-a.html", "3-a.html"]
    texts = await parsed_texts(inputs, CountingParser())
    assert list(texts) == ["a.html.md", "2-a.html.md", "3-a.html.md"]
    assert "Words of two." in texts["3-a.html.md"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("image.png", b"\x89PNG\r\n\0\0\0", "none of text, HTML, PDF"),
        ("broken.pdf", b"%PDF-1.4 nothing", "broken.pdf cannot be used: the PDF is damaged"),
    ],
)
async def test_what_cannot_be_read_is_refused_at_the_start(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    """A file without text ends the command before anything is paid for, with the way out."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        await parsed_texts(read_inputs([path]), CountingParser())
    assert "convert it" in caught.value.hint
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_inputs([tmp_path / "missing.txt"])
    assert "PDF, Word" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("notes.md", "notes.md"),
        ("notes\udce9.md", "notesé.md"),
        ("\udcff\udcfe.md", "ÿþ.md"),
        ("a\\b.md", "a_b.md"),
        ("ev\u202eil.md", "evil.md"),
        ("a\nb.md", "a b.md"),
        ("x" * 250 + ".md", "x" * 181 + ".md"),
        ("光" * 80 + ".pdf", "光" * 60 + ".pdf"),
        ("e\u0301.md", "é.md"),
    ],
)
def test_a_name_that_no_run_can_have_is_changed(name: str, usable: str, tmp_path: Path) -> None:
    """Whatever a file of the user's is called, a run takes it, and agents can read it by its name."""
    assert usable_name(name) == usable
    assert is_path(f"inputs/2-{usable}.md")
    if len(os.fsencode(name)) < 255:
        (tmp_path / name).write_text("Solar rose.")
        (one,) = read_inputs([tmp_path / name])
        assert one.name == usable


def test_names_that_become_the_same_stay_two(tmp_path: Path) -> None:
    """Two files of other bytes with one readable name are both there."""
    paths = [tmp_path / "a\\b.md", tmp_path / "a_b.md"]
    for path in paths:
        path.write_text(path.name)
    assert [one.name for one in read_inputs(paths)] == ["a_b.md", "2-a_b.md"]
