"""Which language a text is recognised as."""

import pytest

from explorer.text.words import language_of, phrases_in


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The plant fed more power into the grid than in April.", "en"),
        ("Das Kraftwerk hat im Mai mehr Strom in das Netz geliefert als im April.", "de"),
        ("La centrale a fourni plus d'électricité en mai que dans le mois d'avril.", "fr"),
        ("La central suministró más electricidad por los vientos del norte y el buen tiempo.", "es"),
        ("电站五月向电网输送的电量比四月多。", "zh"),
        ("発電所は五月に四月よりも多くの電力を送りました。", "ja"),
        ("발전소는 오월에 사월보다 더 많은 전기를 보냈습니다.", "ko"),
        ("Станция дала больше энергии, чем в апреле.", ""),
        ("12 %", ""),
        ("", ""),
    ],
)
def test_a_language_is_recognised_by_letters_and_common_words(text: str, language: str) -> None:
    """Of other languages, and of too little text, nothing is claimed."""
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("language", "text", "phrases"),
    [
        ("", "Wie hoch ist die Brücke von Arvik?", "de"),
        ("", "How high is the bridge of Arvik?", "en"),
        ("", "阿维克大桥有多高？", "zh"),
        ("de", "How high is the bridge of Arvik?", "de"),
        ("de-AT", "", "de"),
        ("Deutsch", "", "de"),
        ("Swiss German", "", "de"),
        ("Delhi English", "", "en"),
        ("zh-CN", "Wie hoch ist die Brücke?", "zh"),
    ],
)
def test_the_language_of_the_phrases_that_the_engine_adds(language: str, text: str, phrases: str) -> None:
    """The language that the user set, by name or code; otherwise the question's, of those that the engine has."""
    assert phrases_in(language, text) == phrases


@pytest.mark.parametrize(
    "question",
    [
        "Wie was de eerste president van Frankrijk?",
        "Was is dit in hemelsnaam, en wie is die man?",
        "Wat is nu het verschil en wie die man was",
        "Wie was die eerste president van Suid-Afrika?",
        "Hvad er der sket i dag med det og den?",
        "Hvad siger man om den og der",
        "Var den man som var i den stad i dag?",
        "Vad säger man om den och hur var det?",
        "Hva skjedde i dag, og er den der?",
        "O que foi dito das eleições e das vacinas?",
        "Quais das cidades das Américas são maiores?",
        "Cosa ne pensano di Rust e chi era il primo?",
        "Qui est le chef des Verts et des Bleus?",
        "Quels sont les effets des lois des années 1990?",
        "Was the war in the die-casting industry over?",
    ],
)
def test_a_question_in_a_language_near_german_gets_english_phrases(question: str) -> None:
    """Words such as `was`, `die`, `den` and `das` are those of other languages, too."""
    assert phrases_in("", question) == "en"


@pytest.mark.parametrize(
    "question",
    [
        "Was ist neu in Rust?",
        "Wer war Vincent van Gogh?",
        "Was sagt man über Charles de Gaulle?",
        "Was kostet das?",
        "Was ist die man page?",
        "Warum ist der Himmel blau?",
        "Was gibt es Neues bei der Volkskrant in Amsterdam?",
        "Wie wird man Mitglied der As Roma?",
    ],
)
def test_a_german_question_with_names_of_other_languages_is_german(question: str) -> None:
    """A few words of another language are a name."""
    assert phrases_in("", question) == "de"
