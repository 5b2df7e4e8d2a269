"""The fixed words of reports written by rule, in English and Chinese."""

import re
from datetime import datetime

from explorer.text.words import phrase_language

LANGUAGE_LINE = re.compile(r"^Language of the report: (\S+)", re.MULTILINE)
SAMPLE_LINE = "This run reads bundled, invented sample data."

PHRASES: dict[str, tuple[str, str]] = {
    "notice": (
        (
            "This report was made without a language model: stories and passages are ranked by rule, and sentences are"
            " extracted word for word from the sources."
        ),
        "本报告未使用语言模型：内容按规则排序，引文逐字摘自来源。",
    ),
    "sample": ("All of it is **invented sample data**.", "全部内容均为**虚构的示例数据**（invented sample data）。"),
    "title_stories": ("Notable on Hacker News", "Hacker News 值得关注的帖子"),
    "title_top": ("Hacker News: the top {count}", "Hacker News 前 {count} 名"),
    "title_one": ("Hacker News: {title}", "Hacker News：{title}"),
    "title_topic": ("Hacker News on “{topic}”", "Hacker News 上的“{topic}”"),
    "on_day": (", {day}", "（{day}）"),
    "lead": (
        "Most notable by points, comments and speed: {titles}.",
        "按得分、评论数和热度增速，最值得关注：{titles}。",
    ),
    "lead_argued": (
        "Most argued about: {title}, with {comments} comments on {points} points {cite}.",
        "争论最多：{title}，{points} 分下有 {comments} 条评论 {cite}。",
    ),
    "lead_rising": ("Rising fastest: {title} {cite}.", "上升最快：{title} {cite}。"),
    "numbers": ("{points} points and {comments} comments {cite}", "{points} 分，{comments} 条评论 {cite}"),
    "speed": (
        "; {velocity} points an hour, seen {age} hours after posting",
        "；每小时 {velocity} 分，发布 {age} 小时后统计",
    ),
    "colon": (":", "："),
    "stop": (".", "。"),
    "why": ("Why notable", "为何值得关注"),
    "article": ("The article", "文章要点"),
    "post": ("The post itself", "帖子正文"),
    "discussion": ("The discussion", "讨论"),
    "replies": ("replies", "回复"),
    "by": ("by {author}", "作者 {author}"),
    "passages": ("Passages", "摘录"),
    "unknown": ("What is not known", "尚不清楚"),
    "themes": ("Themes", "主题"),
    "theme_line": ("**{theme}**, {count} of {all} stories: {titles}", "**{theme}**，{all} 篇中的 {count} 篇：{titles}"),
    "theme_ai": ("AI and language models", "人工智能与语言模型"),
    "theme_databases": ("Databases and infrastructure", "数据库与基础设施"),
    "theme_languages": ("Languages, compilers and tools", "编程语言、编译器与工具"),
    "theme_security": ("Security and privacy", "安全与隐私"),
    "theme_hardware": ("Hardware and machines", "硬件"),
    "theme_science": ("Science, space and energy", "科学、航天与能源"),
    "theme_open_source": ("Open source and its people", "开源与维护者"),
    "theme_business": ("Business, law and work", "商业、法律与工作"),
    "also": ("Also notable", "其他值得关注的帖子"),
    "ranking": ("Ranking", "排名"),
    "no_text": ("no text of it could be read", "未能读取其正文"),
    "not_looked": ("its text was not looked at", "未查看其正文"),
    "no_article": ("The article of “{title}” could not be read: {why}", "未能读取“{title}”的文章：{why}"),
    "no_thread": ("The comments on “{title}” could not be read: {why}", "未能读取“{title}”的评论：{why}"),
    "no_comment_text": (
        "No text was available of the {total} comments on “{title}”",
        "“{title}”的 {total} 条评论均无法取得正文",
    ),
    "no_quote": ("“{title}” gave no sentence that is clear on its own", "“{title}”中没有可独立引用的句子"),
    "no_articles": ("The articles of these could not be read: {titles}", "以下帖子的文章未能读取：{titles}"),
    "no_threads": ("The comments on these could not be read: {titles}", "以下帖子的评论未能读取：{titles}"),
    "no_comment_texts": ("No text was available of the comments on: {titles}", "以下帖子的评论无法取得正文：{titles}"),
    "and_more": ("and {count} more", "及另外 {count} 篇"),
    "check_network": (
        "`explorer doctor` shows whether the services can be reached; `explorer demo` needs no network",
        "可用 `explorer doctor` 检查服务是否可达；`explorer demo` 无需网络",
    ),
    "looked_through": (
        "{count} stories of the list and the search were compared with it by title and address",
        "已按标题和网址比对列表与搜索中的 {count} 篇帖子",
    ),
    "part_read": (
        "Of “{title}” the first {read} of {all} characters were read",
        "“{title}”只读取了 {all} 个字符中的前 {read} 个",
    ),
    "lines_cut": ("Very long lines of “{title}” were read in part", "“{title}”中过长的行只读取了一部分"),
    "no_document": ("The document “{title}” could not be read: {why}", "未能读取文档“{title}”：{why}"),
    "folder_failed": ("The folder could not be searched: {why}", "无法搜索文件夹：{why}"),
    "folder_nothing": ("No document of the folder says anything about it", "文件夹中没有相关内容"),
    "flagged": ("“{title}” is marked {flags}", "“{title}”带有标记：{flags}"),
    "threads_cut": (
        "Long threads were read in part: the best-ranked comments only",
        "较长的讨论只读取了排名靠前的评论",
    ),
    "list_failed": ("The list of stories could not be read: {why}", "未能读取帖子列表：{why}"),
    "search_failed": ("The search for “{words}” failed: {why}", "搜索“{words}”失败：{why}"),
    "web_failed": (
        "The web could not be searched for “{words}”: {why}",
        "无法在网上搜索“{words}”：{why}",
    ),
    "configure": (
        (
            "To search the web, set `TAVILY_API_KEY` and check the connection with `explorer doctor`; a language model"
            " is used once `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set."
        ),
        (
            "如需网络搜索，请设置 `TAVILY_API_KEY` 并用 `explorer doctor` 检查连接；设置 `ANTHROPIC_API_KEY`、"
            "`OPENAI_API_KEY` 或 `OPENAI_BASE_URL` 后将使用语言模型。"
        ),
    ),
    "nothing": ("Nothing was found that answers the question.", "没有找到能够回答该问题的内容。"),
    "nothing_on": ("No story about “{topic}” was found.", "没有找到关于“{topic}”的帖子。"),
    "answer_title": ("{question}", "{question}"),
    "best_passage": ("The passage closest to the question:", "与问题最接近的一段："),
    "best_match": (
        (
            "What follows are the sentences that share most words with the question; whether they answer it is for the"
            " reader to judge."
        ),
        "以下句子与问题共有的词最多；是否回答了问题，请读者自行判断。",
    ),
    "words_missing": ("Nothing read mentions: {words}", "所读内容均未提及：{words}"),
    "only_extracted": (
        "Sentences were chosen by shared words, without understanding; a fact worded differently may be missed",
        "句子按共有词语选出，未经理解；措辞不同的内容可能遗漏",
    ),
    "stories_beyond": ("{count} further stories of the list were not looked at closely", "列表中另有 {count} 篇未细看"),
    "follow_up": ("Follow-up: {question}", "追问：{question}"),
    "follow_none": (
        "None of the files of this run says anything about it.",
        "本次运行的文件中没有相关内容。",
    ),
    "separator": ("; ", "；"),
    "stopped": ("The run was stopped early; not everything planned was read", "运行提前结束，未能读完计划内容"),
}


class Phrases:
    """The table in one language."""

    def __init__(self, language: str) -> None:
        self.language = "zh" if language.lower().startswith("zh") else "en"

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a phrase with its values filled in."""
        english, chinese = PHRASES[key]
        return (chinese if self.language == "zh" else english).format(**values)

    def matches(self, key: str, text: str) -> str:
        """Return the title that a gap of this kind names; empty when the text is none."""
        template = re.escape(PHRASES[key][self.language == "zh"])
        pattern = template.replace(r"\{title\}", "(?P<title>.+?)")
        match = re.fullmatch(re.sub(r"\\\{\w+\\\}", ".*", pattern), text)
        return match["title"] if match else ""

    def day(self, moment: str) -> str:
        """Return a date in words; empty when there is none."""
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return ""
        if self.language == "zh":
            return f"{at.year} 年 {at.month} 月 {at.day} 日"
        return f"{at.day} {at:%B %Y}"


def language_in_task(words: str) -> str:
    """Return the language that an orchestrator's task asks for; empty when it names none."""
    match = LANGUAGE_LINE.search(words)
    return match[1] if match else ""


def language_of(text: str) -> str:
    """Return the language of a question: `zh` when a good part of its letters is Chinese."""
    return phrase_language(text)
