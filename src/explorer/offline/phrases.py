"""The fixed words of reports written by rule, in English, Chinese and German."""

import re
from datetime import datetime

from explorer.text.words import HIRAGANA_LETTER, is_german, phrase_language

LANGUAGE_LINE = re.compile(r"^Language of the report: (\S+)", re.MULTILINE)
SAMPLE_LINE = "This run reads bundled, invented sample data."

PHRASES: dict[str, dict[str, str]] = {
    "en": {
        "notice": (
            "This report was made without a language model: rules rank stories and choose sentences, word for word."
        ),
        "sample": "All of it is **invented sample data**.",
        "title_stories": "Notable on {place}",
        "title_topic": "{place} on “{topic}”",
        "on_day": ", {day}",
        "lead": "Biggest by points and comments: {titles}.",
        "lead_argued": "Most argued about: {title}, with {comments} comments on {points} points {cite}.",
        "figures": "{points} points and [{comments} comments](<{page}>), {day} {cite}",
        "stop": ".",
        "article": "The article",
        "post": "The post",
        "discussion": "The discussion",
        "replies": "replies",
        "missing": "No text to quote: {what}.",
        "the_article": "the article",
        "the_comments": "the comments",
        "unknown": "What is not known",
        "also": "Also on the list",
        "check_network": (
            "`explorer doctor` shows whether the services can be reached; `explorer demo` needs no network"
        ),
        "looked_through": "The stories of the list and the search, compared with it by title and address: {count}",
        "no_document": "“{title}” could not be read: {why}",
        "part_read": "Of “{title}” the first {read} of {all} characters were read",
        "lines_cut": "Very long lines of “{title}” were read in part",
        "folder_failed": "The folder could not be searched: {why}",
        "folder_nothing": "No document of the folder says anything about it",
        "folder_has": "The documents of the folder: {files}",
        "folder_rest": "{count} of the folder's {total} documents are not quoted here",
        "and_more": "and {count} more",
        "web_not_searched": "The web was not searched, because a folder is given; without `--corpus` it is",
        "not_searched": "Not searched in the folder: {files}",
        "flagged": "“{title}” is marked {flags}",
        "list_failed": "The list of stories could not be read: {why}",
        "search_failed": "The search for “{words}” failed: {why}",
        "web_failed": "The web could not be searched for “{words}”: {why}",
        "configure": (
            "To search the web, set `TAVILY_API_KEY` and check the connection with `explorer doctor`; a language"
            " model is used once `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set"
        ),
        "no_result": "no results",
        "nothing": "Nothing was found that is close to the question.",
        "nothing_on": "No story about “{topic}” was found.",
        "best_passage": "The passage closest to the question: “{text}” {cite}",
        "best_match": (
            "These are the sentences that share most words with the question; whether they answer it is for the"
            " reader to judge."
        ),
        "columns": "columns: {names}",
        "gist": (
            "The question names nothing to look for. Quoted are sentences that share most words with the rest of"
            " their text, or the first of a short one."
        ),
        "no_text": "No text could be read from “{title}”",
        "titles_missing": "No title found here names: {words}",
        "words_missing": "Nothing quoted mentions: {words}",
        "follow_up": "Follow-up: {question}",
        "separator": "; ",
        "stopped": "The run was stopped early; not everything planned was read",
    },
    "zh": {
        "notice": "本报告未使用语言模型：帖子按规则排序，句子按规则逐字摘录。",
        "sample": "全部内容均为**虚构的示例数据**（invented sample data）。",
        "title_stories": "{place} 值得关注的帖子",
        "title_topic": "{place} 上的“{topic}”",
        "on_day": "（{day}）",
        "lead": "得分与评论最多：{titles}。",
        "lead_argued": "争论最多：{title}，{points} 分下有 {comments} 条评论 {cite}。",
        "figures": "{points} 分，[{comments} 条评论](<{page}>)，{day} {cite}",
        "stop": "。",
        "article": "文章要点",
        "post": "帖子正文",
        "discussion": "讨论",
        "replies": "回复",
        "missing": "没有可引用的文字：{what}。",
        "the_article": "文章",
        "the_comments": "评论",
        "unknown": "尚不清楚",
        "also": "列表中的其他帖子",
        "check_network": "可用 `explorer doctor` 检查服务是否可达；`explorer demo` 无需网络",
        "looked_through": "已按标题和网址比对列表与搜索中的 {count} 篇帖子",
        "no_document": "未能读取“{title}”：{why}",
        "part_read": "“{title}”只读取了 {all} 个字符中的前 {read} 个",
        "lines_cut": "“{title}”中过长的行只读取了一部分",
        "folder_failed": "无法搜索文件夹：{why}",
        "folder_nothing": "文件夹中没有相关内容",
        "folder_has": "文件夹中的文件：{files}",
        "folder_rest": "文件夹共有 {total} 个文件，其中 {count} 个未摘录",
        "and_more": "等，另有 {count} 个",
        "web_not_searched": "因指定了文件夹，未在网上搜索；去掉 `--corpus` 即可搜索",
        "not_searched": "文件夹中未搜索：{files}",
        "flagged": "“{title}”带有标记：{flags}",
        "list_failed": "未能读取帖子列表：{why}",
        "search_failed": "搜索“{words}”失败：{why}",
        "web_failed": "无法在网上搜索“{words}”：{why}",
        "configure": (
            "如需网络搜索，请设置 `TAVILY_API_KEY` 并用 `explorer doctor` 检查连接；设置"
            " `ANTHROPIC_API_KEY`、`OPENAI_API_KEY` 或 `OPENAI_BASE_URL` 后将使用语言模型"
        ),
        "no_result": "没有结果",
        "nothing": "没有找到与问题相近的内容。",
        "nothing_on": "没有找到关于“{topic}”的帖子。",
        "best_passage": "与问题最接近的一段：“{text}” {cite}",
        "best_match": "以下句子与问题共有的词最多；是否回答了问题，请读者自行判断。",
        "columns": "列：{names}",
        "gist": "问题没有指明要找什么。以下是与全文共有的词最多的句子，短文则为开头的句子。",
        "no_text": "未能从“{title}”读到文字",
        "titles_missing": "这里的标题均未提到：{words}",
        "words_missing": "所引内容均未提及：{words}",
        "follow_up": "追问：{question}",
        "separator": "；",
        "stopped": "运行提前结束，未能读完计划内容",
    },
    "de": {
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
        "folder_has": "Die Dokumente des Ordners: {files}",
        "folder_rest": "Von den {total} Dokumenten des Ordners sind {count} hier nicht zitiert",
        "and_more": "und {count} weitere",
        "web_not_searched": "Im Netz wurde nicht gesucht, weil ein Ordner angegeben ist; ohne `--corpus` geschieht es",
        "not_searched": "Im Ordner nicht durchsucht: {files}",
        "flagged": "„{title}“ ist gekennzeichnet: {flags}",
        "list_failed": "Die Liste der Beiträge konnte nicht gelesen werden: {why}",
        "search_failed": "Die Suche nach „{words}“ schlug fehl: {why}",
        "web_failed": "Das Netz konnte nicht nach „{words}“ durchsucht werden: {why}",
        "configure": (
            "Für die Suche im Netz `TAVILY_API_KEY` setzen und die Verbindung mit `explorer doctor` prüfen; ein"
            " Sprachmodell wird benutzt, sobald `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` oder `OPENAI_BASE_URL`"
            " gesetzt ist"
        ),
        "no_result": "keine Ergebnisse",
        "nothing": "Es wurde nichts gefunden, was der Frage nahe kommt.",
        "nothing_on": "Kein Beitrag zu „{topic}“ wurde gefunden.",
        "best_passage": "Die Stelle, die der Frage am nächsten kommt: “{text}” {cite}",
        "best_match": (
            "Diese Sätze haben die meisten Wörter mit der Frage gemeinsam; ob sie die Frage beantworten, möge der"
            " Leser beurteilen."
        ),
        "columns": "Spalten: {names}",
        "gist": (
            "Die Frage nennt nichts, wonach zu suchen ist. Zitiert sind Sätze, die mit dem übrigen Text die meisten"
            " Wörter gemeinsam haben, oder die ersten eines kurzen Textes."
        ),
        "no_text": "Aus „{title}“ war kein Text zu lesen",
        "titles_missing": "Kein Titel hier nennt: {words}",
        "words_missing": "Kein Zitat erwähnt: {words}",
        "follow_up": "Weitere Frage: {question}",
        "separator": "; ",
        "stopped": "Der Lauf wurde vorzeitig beendet; nicht alles, was geplant war, wurde gelesen",
    },
}
"""The words by language."""
_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
MONTHS = _MONTHS.split()


class Phrases:
    """The table in one language."""

    def __init__(self, language: str) -> None:
        small = language.lower()
        self.language = next((code for code in ("zh", "de") if small.startswith(code)), "en")
        if small in {"german", "deutsch"}:
            self.language = "de"

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a phrase with its values filled in."""
        return PHRASES[self.language][key].format(**values)

    def day(self, moment: str) -> str:
        """Return a date in words; empty when there is none."""
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return ""
        if self.language == "zh":
            return f"{at.year} 年 {at.month} 月 {at.day} 日"
        return f"{at.day}. {MONTHS[at.month - 1]} {at.year}" if self.language == "de" else f"{at.day} {at:%B %Y}"


def language_in_task(words: str) -> str:
    """Return the language that an orchestrator's task asks for; empty when it names none."""
    match = LANGUAGE_LINE.search(words)
    return match[1] if match else ""


def language_of(text: str) -> str:
    """Return `zh`, `de` or `en`, the languages of these phrases, by a question's letters and commonest words.

    Japanese, which has Chinese letters, too, gets an English report.
    """
    if HIRAGANA_LETTER.search(text):
        return "en"
    return "de" if is_german(text) else phrase_language(text)
