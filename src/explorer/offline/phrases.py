"""The fixed words of reports written by rule, in English and Chinese; German ones are in `german.py`."""

import re
from datetime import datetime

from explorer.offline.german import GERMAN, german_day, is_german
from explorer.text.languages import HIRAGANA_LETTER
from explorer.text.words import phrase_language

LANGUAGE_LINE = re.compile(r"^Language of the report: (\S+)", re.MULTILINE)
SAMPLE_LINE = "This run reads bundled, invented sample data."

PHRASES: dict[str, tuple[str, str]] = {
    "notice": (
        "This report was made without a language model: rules rank stories and choose sentences, word for word.",
        "本报告未使用语言模型：帖子按规则排序，句子按规则逐字摘录。",
    ),
    "sample": ("All of it is **invented sample data**.", "全部内容均为**虚构的示例数据**（invented sample data）。"),
    "title_stories": ("Notable on {place}", "{place} 值得关注的帖子"),
    "title_topic": ("{place} on “{topic}”", "{place} 上的“{topic}”"),
    "on_day": (", {day}", "（{day}）"),
    "lead": ("Biggest by points and comments: {titles}.", "得分与评论最多：{titles}。"),
    "lead_argued": (
        "Most argued about: {title}, with {comments} comments on {points} points {cite}.",
        "争论最多：{title}，{points} 分下有 {comments} 条评论 {cite}。",
    ),
    "figures": (
        "{points} points and [{comments} comments](<{page}>), {day} {cite}",
        "{points} 分，[{comments} 条评论](<{page}>)，{day} {cite}",
    ),
    "stop": (".", "。"),
    "article": ("The article", "文章要点"),
    "post": ("The post", "帖子正文"),
    "discussion": ("The discussion", "讨论"),
    "replies": ("replies", "回复"),
    "missing": ("No text to quote: {what}.", "没有可引用的文字：{what}。"),
    "the_article": ("the article", "文章"),
    "the_comments": ("the comments", "评论"),
    "unknown": ("What is not known", "尚不清楚"),
    "also": ("Also on the list", "列表中的其他帖子"),
    "check_network": (
        "`explorer doctor` shows whether the services can be reached; `explorer demo` needs no network",
        "可用 `explorer doctor` 检查服务是否可达；`explorer demo` 无需网络",
    ),
    "looked_through": (
        "The stories of the list and the search, compared with it by title and address: {count}",
        "已按标题和网址比对列表与搜索中的 {count} 篇帖子",
    ),
    "no_document": ("“{title}” could not be read: {why}", "未能读取“{title}”：{why}"),
    "part_read": (
        "Of “{title}” the first {read} of {all} characters were read",
        "“{title}”只读取了 {all} 个字符中的前 {read} 个",
    ),
    "lines_cut": ("Very long lines of “{title}” were read in part", "“{title}”中过长的行只读取了一部分"),
    "folder_failed": ("The folder could not be searched: {why}", "无法搜索文件夹：{why}"),
    "folder_nothing": ("No document of the folder says anything about it", "文件夹中没有相关内容"),
    "not_searched": ("Not searched in the folder: {files}", "文件夹中未搜索：{files}"),
    "flagged": ("“{title}” is marked {flags}", "“{title}”带有标记：{flags}"),
    "list_failed": ("The list of stories could not be read: {why}", "未能读取帖子列表：{why}"),
    "search_failed": ("The search for “{words}” failed: {why}", "搜索“{words}”失败：{why}"),
    "web_failed": (
        "The web could not be searched for “{words}”: {why}",
        "无法在网上搜索“{words}”：{why}",
    ),
    "configure": (
        (
            "To search the web, set `TAVILY_API_KEY` and check the connection with `explorer doctor`; a language model"
            " is used once `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set"
        ),
        (
            "如需网络搜索，请设置 `TAVILY_API_KEY` 并用 `explorer doctor` 检查连接；设置 `ANTHROPIC_API_KEY`、"
            "`OPENAI_API_KEY` 或 `OPENAI_BASE_URL` 后将使用语言模型"
        ),
    ),
    "no_result": ("no results", "没有结果"),
    "nothing": ("Nothing was found that is close to the question.", "没有找到与问题相近的内容。"),
    "nothing_on": ("No story about “{topic}” was found.", "没有找到关于“{topic}”的帖子。"),
    "best_passage": ("The passage closest to the question: “{text}” {cite}", "与问题最接近的一段：“{text}” {cite}"),
    "best_match": (
        (
            "These are the sentences that share most words with the question; whether they answer it is for the reader"
            " to judge."
        ),
        "以下句子与问题共有的词最多；是否回答了问题，请读者自行判断。",
    ),
    "columns": ("columns: {names}", "列：{names}"),
    "gist": (
        (
            "The question names nothing to look for. Quoted are sentences that share most words with the rest of their"
            " text, or the first of a short one."
        ),
        "问题没有指明要找什么。以下是与全文共有的词最多的句子，短文则为开头的句子。",
    ),
    "no_text": ("No text could be read from “{title}”", "未能从“{title}”读到文字"),
    "titles_missing": ("No title found here names: {words}", "这里的标题均未提到：{words}"),
    "words_missing": ("Nothing quoted mentions: {words}", "所引内容均未提及：{words}"),
    "follow_up": ("Follow-up: {question}", "追问：{question}"),
    "separator": ("; ", "；"),
    "stopped": ("The run was stopped early; not everything planned was read", "运行提前结束，未能读完计划内容"),
}


class Phrases:
    """The table in one language."""

    def __init__(self, language: str) -> None:
        small = language.lower()
        self.language = next((code for code in ("zh", "de") if small.startswith(code)), "en")
        if small in {"german", "deutsch"}:
            self.language = "de"

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a phrase with its values filled in."""
        if self.language == "de":
            return GERMAN[key].format(**values)
        english, chinese = PHRASES[key]
        return (chinese if self.language == "zh" else english).format(**values)

    def day(self, moment: str) -> str:
        """Return a date in words; empty when there is none."""
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return ""
        if self.language == "zh":
            return f"{at.year} 年 {at.month} 月 {at.day} 日"
        return german_day(at.year, at.month, at.day) if self.language == "de" else f"{at.day} {at:%B %Y}"


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
