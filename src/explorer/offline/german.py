"""The fixed words of reports written by rule, in German; and how a German question is known."""

import re

GERMAN: dict[str, str] = {
    "notice": "Dieser Bericht entstand ohne Sprachmodell: Regeln ordnen Beiträge und wählen Sätze, Wort für Wort.",
    "sample": "Alles darin sind **erfundene Beispieldaten** (invented sample data).",
    "title_stories": "Bemerkenswert auf {place}",
    "title_topic": "{place} zu „{topic}“",
    "on_day": ", {day}",
    "lead": "Am größten nach Punkten und Kommentaren: {titles}.",
    "lead_argued": "Am meisten umstritten: {title}, mit {comments} Kommentaren bei {points} Punkten {cite}.",
    "figures": "{points} Punkte und [{comments} Kommentare](<{page}>), {day} {cite}",
    "stop": ".",
    "article": "Der Artikel",
    "post": "Der Beitrag",
    "discussion": "Die Diskussion",
    "replies": "Antworten",
    "missing": "Kein Text zum Zitieren: {what}.",
    "the_article": "der Artikel",
    "the_comments": "die Kommentare",
    "unknown": "Was nicht bekannt ist",
    "also": "Außerdem auf der Liste",
    "check_network": "`explorer doctor` zeigt, ob die Dienste erreichbar sind; `explorer demo` braucht kein Netz",
    "looked_through": "{count} Beiträge der Liste und der Suche wurden nach Titel und Adresse damit verglichen",
    "no_document": "„{title}“ konnte nicht gelesen werden: {why}",
    "part_read": "Von „{title}“ wurden die ersten {read} von {all} Zeichen gelesen",
    "lines_cut": "Sehr lange Zeilen von „{title}“ wurden nur zum Teil gelesen",
    "folder_failed": "Der Ordner konnte nicht durchsucht werden: {why}",
    "folder_nothing": "Kein Dokument des Ordners sagt etwas dazu",
    "not_searched": "Im Ordner nicht durchsucht: {files}",
    "flagged": "„{title}“ ist gekennzeichnet: {flags}",
    "list_failed": "Die Liste der Beiträge konnte nicht gelesen werden: {why}",
    "search_failed": "Die Suche nach „{words}“ schlug fehl: {why}",
    "web_failed": "Das Netz konnte nicht nach „{words}“ durchsucht werden: {why}",
    "configure": (
        "Für die Suche im Netz `TAVILY_API_KEY` setzen und die Verbindung mit `explorer doctor` prüfen; ein"
        " Sprachmodell wird benutzt, sobald `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` oder `OPENAI_BASE_URL` gesetzt ist"
    ),
    "no_result": "keine Ergebnisse",
    "nothing": "Es wurde nichts gefunden, was der Frage nahe kommt.",
    "nothing_on": "Kein Beitrag zu „{topic}“ wurde gefunden.",
    "best_passage": "Die Stelle, die der Frage am nächsten kommt: “{text}” {cite}",
    "best_match": (
        "Diese Sätze haben die meisten Wörter mit der Frage gemeinsam; ob sie die Frage beantworten, möge der Leser"
        " beurteilen."
    ),
    "columns": "Spalten: {names}",
    "gist": (
        "Die Frage nennt nichts, wonach zu suchen ist. Zitiert sind Sätze, die mit dem übrigen Text die meisten Wörter"
        " gemeinsam haben, oder die ersten eines kurzen Textes."
    ),
    "no_text": "Aus „{title}“ war kein Text zu lesen",
    "titles_missing": "Kein Titel hier nennt: {words}",
    "words_missing": "Kein Zitat erwähnt: {words}",
    "follow_up": "Weitere Frage: {question}",
    "separator": "; ",
    "stopped": "Der Lauf wurde vorzeitig beendet; nicht alles, was geplant war, wurde gelesen",
}
_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
MONTHS = _MONTHS.split()
_WORDS = (
    "der die das den dem des ein eine einen einem einer und oder ist sind war waren wird wurde wurden werden hat haben"
    " nicht mit von vom zu zum zur auf für über bei nach aus wie was wer wo wann warum welche welcher welches wieviel"
    " viel gibt es ich wir man heute gestern kann können im am sich auch nur"
    " diese dieser letzte letzten sagt hält denkt"
)
GERMAN_WORDS = frozenset(_WORDS.split())
ENGLISH_WORDS = frozenset(
    [
        "the",
        "of",
        "and",
        "is",
        "are",
        "was",
        "what",
        "how",
        "who",
        "when",
        "why",
        "which",
        "for",
        "on",
        "to",
        "did",
        "does",
    ]
)
WORD = re.compile(r"[^\W\d_]+")
LEAST_WORDS = 2


def is_german(text: str) -> bool:
    """Return whether a question is German: two of its commonest words, and more of them than English ones."""
    words = [word.lower() for word in WORD.findall(text)]
    german = sum(word in GERMAN_WORDS for word in words)
    return german >= LEAST_WORDS and german > sum(word in ENGLISH_WORDS for word in words)


def german_day(year: int, month: int, day: int) -> str:
    """Return a date in words."""
    return f"{day}. {MONTHS[month - 1]} {year}"
