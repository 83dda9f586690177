"""What the "?" of a page says, and which page of the guide it leads to: one topic for pages that are about the same thing.

``tests/web/page_help.py`` fails for a page of the portal that is neither here nor in its list of pages without help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Topic:
    """What pages are for.

    Attributes:
        page: the name of a page of the guide.
        text: two sentences.
        urls: the names of the portal's URLs that it is about.
    """

    page: str
    text: str | Promise
    urls: tuple[str, ...]


TOPICS = (
    Topic(
        "ask",
        _(
            "Ask in your own words, and the answer comes from your documents. "
            "Each number in it opens the passage it is based on."
        ),
        ("conversations:home", "conversations:detail", "conversations:list"),
    ),
    Topic(
        "projects",
        _(
            "A project keeps conversations together and gives each of them the same instructions and collections. "
            "Sharing it shows its instructions to others, never your conversations."
        ),
        ("conversations:projects", "conversations:project", "conversations:project-edit"),
    ),
    Topic(
        "prompts",
        _(
            "Texts that you write often, your own and those shared with the workspace. "
            "Type / at the start of a message to insert one."
        ),
        ("conversations:prompts", "conversations:prompt-create", "conversations:prompt"),
    ),
    Topic(
        "sharing",
        _(
            "A member shared this conversation with the workspace. "
            "You see only the sources you have access to, and you can't ask here."
        ),
        ("conversations:shared",),
    ),
    Topic(
        "sharing",
        _(
            "Download an answer as a Word, PDF or Markdown file with its sources. "
            "Or save it as a document in a collection, where it can be searched and cited."
        ),
        ("conversations:turn-document",),
    ),
    Topic(
        "assistants",
        _(
            "An assistant answers with its own model, collections, tools and instructions. "
            "People can choose it once a version is published."
        ),
        (
            "assistants:list",
            "assistants:create",
            "assistants:detail",
            "assistants:edit",
            "assistants:version",
        ),
    ),
    Topic(
        "documents",
        _(
            "A collection holds documents that belong together. "
            "You can ask about a document as soon as its status is Ready."
        ),
        ("collections:list", "collections:create", "collections:detail"),
    ),
    Topic(
        "documents",
        _(
            "Documents are divided into passages, and answers quote passages. "
            "Open one to see where it comes from, correct it, or exclude it from search."
        ),
        ("collections:document", "collections:document-about", "collections:chunks", "collections:chunk"),
    ),
    Topic(
        "documents",
        _(
            "The files of this collection as a tree, with their history. "
            "Tools can read them, and change them where your rules allow it."
        ),
        (
            "collections:files",
            "collections:file",
            "collections:file-edit",
            "collections:file-history",
            "collections:file-revision",
            "collections:file-search",
            "collections:file-structure",
            "collections:file-rules",
            "collections:git",
            "collections:git-diff",
            "collections:git-blame",
        ),
    ),
    Topic(
        "documents",
        _(
            "An import adds many files at once: an archive, a folder, a repository or web pages. "
            "Run it again to fetch what has changed."
        ),
        ("collections:imports", "collections:import"),
    ),
    Topic(
        "search",
        _(
            "Try what a question finds, before anyone asks it. "
            "Mark the right passages and save the question to test other settings later."
        ),
        ("collections:search",),
    ),
    Topic(
        "search",
        _(
            "Settings that decide how documents are read and searched. "
            "Some of them apply only to documents added or read again afterwards."
        ),
        (
            "collections:settings",
            "collections:type-rules",
            "collections:code-patterns",
            "collections:recognition",
        ),
    ),
    Topic(
        "search",
        _(
            "Compares the documents with what search knows about them. "
            "A repair recounts or reads again and never changes your documents."
        ),
        ("collections:check",),
    ),
    Topic(
        "tools",
        _(
            "A tool is something a model can call, such as a search or a calculation. "
            "It runs only if a rule allows it."
        ),
        (
            "tools:catalog",
            "tools:tool",
            "tools:tool-edit",
            "tools:contract-test",
            "tools:contract-test-create",
        ),
    ),
    Topic(
        "tools",
        _(
            "Connect your own tools: an API, an MCP server or a plug-in. "
            "A new or changed tool can't be called before you accept it."
        ),
        (
            "tools:sources",
            "tools:source-create",
            "tools:source",
            "tools:source-edit",
            "tools:version",
        ),
    ),
    Topic(
        "tools",
        _(
            "Rules decide who can call which tools: Deny beats Ask, and Ask beats Allow. "
            "Anything without a rule is denied."
        ),
        (
            "tools:permissions",
            "tools:grants",
            "tools:grant-create",
            "tools:grant-edit",
            "tools:toolkits",
            "tools:collection",
            "tools:access",
        ),
    ),
    Topic(
        "approvals",
        _(
            "These tool calls wait for a person, and nothing runs before that. "
            "You can change the arguments before you approve, or reject the call with a reason."
        ),
        ("tools:approvals", "tools:approval"),
    ),
    Topic(
        "tools",
        _(
            "Every tool call and every passage that was read, with the rule that decided. "
            "Open a call to see its arguments and its result."
        ),
        ("tools:calls", "tools:call", "tools:reads", "tools:call-replay", "tools:run-replay"),
    ),
    Topic(
        "usage",
        _(
            "What tools and models were used for, and what that cost. "
            "Budgets stop spending; limits refuse calls that come too often."
        ),
        ("usage:page", "web:settings-budgets", "tools:settings-limits"),
    ),
    Topic(
        "datasets",
        _(
            "A dataset holds questions with the right answers and their sources. "
            "Use it to measure models, prompts and search on your own documents."
        ),
        (
            "datasets:list",
            "datasets:detail",
            "datasets:from-collection",
            "datasets:generate",
            "datasets:job",
            "datasets:sources",
            "datasets:from-feedback",
            "datasets:from-conversation",
        ),
    ),
    Topic(
        "datasets",
        _(
            "People decide here which rows are good enough to keep. "
            "The checks find duplicates, personal data and test questions that leaked into training."
        ),
        ("datasets:review", "datasets:row", "datasets:checks"),
    ),
    Topic(
        "datasets",
        _(
            "A version freezes the rows, so that results can be compared later. "
            "Exports are made from a version; imported rows wait for review."
        ),
        (
            "datasets:versions",
            "datasets:version",
            "datasets:diff",
            "datasets:exports",
            "datasets:export",
            "datasets:imports",
            "datasets:import",
        ),
    ),
    Topic(
        "experiments",
        _(
            "An experiment asks the questions of a dataset with several setups and scores the answers. "
            "Each setup is called an arm."
        ),
        (
            "evaluations:list",
            "evaluations:create",
            "evaluations:detail",
            "evaluations:repeats",
            "evaluations:trial",
        ),
    ),
    Topic(
        "experiments",
        _(
            "Compares two setups, question by question. "
            "A difference counts only if it is larger than chance explains."
        ),
        ("evaluations:compare", "evaluations:failures"),
    ),
    Topic(
        "experiments",
        _(
            "The gate compares a new setup with the baseline, which is the one in use. "
            "It passes only if no score falls by more than you allow."
        ),
        ("evaluations:gate",),
    ),
    Topic(
        "experiments",
        _(
            "A safety suite hides an attacker's instructions in harmless documents. "
            "The experiment shows how often a setup follows them."
        ),
        ("evaluations:suite-create", "evaluations:safety"),
    ),
    Topic(
        "grading",
        _(
            "People and judges grade answers by the same rubric: criteria with described levels. "
            "A judge can block a release only if it agrees with people."
        ),
        (
            "evaluations:queues",
            "evaluations:queue-create",
            "evaluations:queue",
            "evaluations:annotate",
            "evaluations:trust",
            "evaluations:rubrics",
            "evaluations:rubric-create",
            "evaluations:rubric",
            "evaluations:rubric-change",
        ),
    ),
    Topic(
        "grading",
        _(
            "A judge scores some of the answers that people get, after they have received them. "
            "You see when quality changes, and each rule has its own budget."
        ),
        ("evaluations:live", "evaluations:live-create", "evaluations:live-rule"),
    ),
    Topic(
        "members",
        _(
            "Invite people with a link, and choose what each can do by their role. "
            "A member you remove loses access at once; what they added stays."
        ),
        ("web:settings-members", "web:settings-invites"),
    ),
    Topic(
        "members",
        _(
            "Let people sign in through your company's identity provider. "
            "Follow the steps from top to bottom, and try it before you require it."
        ),
        ("sso:settings-sign-in",),
    ),
    Topic(
        "administration",
        _(
            "Connects this workspace to models and to other programs. "
            "A provider's key is kept encrypted, and an API key is shown only once."
        ),
        (
            "web:settings-models",
            "web:settings-keys",
            "web:settings-connections",
            "web:settings-webhooks",
            "web:settings-webhook",
            "web:settings-outgoing",
        ),
    ),
    Topic(
        "administration",
        _(
            "Decides how long things are kept and what is erased. "
            "A legal hold stops every removal until it is released."
        ),
        ("web:settings-retention", "conversations:settings-rules", "web:settings-erasure"),
    ),
    Topic(
        "administration",
        _(
            "The audit log shows who did what, and when. "
            "Entries are only ever added, never changed or deleted."
        ),
        ("web:settings-audit", "web:settings-audit-stream"),
    ),
    Topic(
        "memory",
        _(
            "Notes about you that the model is given with your questions. "
            "Only you can see them, and nothing is used before you switch memory on."
        ),
        ("conversations:settings-memory",),
    ),
    Topic(
        "memory",
        _(
            "Instructions that every model in this workspace is told first. "
            "Everyone can read them; admins can change them."
        ),
        ("conversations:settings-instructions",),
    ),
    Topic(
        "notifications",
        _(
            "What has happened to your answers, approvals, long work and budgets. "
            "You choose what reaches you here, in your browser and by mail."
        ),
        ("web:notices", "web:settings-notices"),
    ),
    Topic(
        "account",
        _("Your name, language, time zone and ways to sign in. They are the same in every workspace."),
        (
            "web:profile",
            "mfa_list_webauthn",
            "mfa_add_webauthn",
        ),
    ),
    Topic(
        "account",
        _(
            "Erasing your account removes it with your conversations and keys in every workspace. "
            "You can undo it for some days; after that no one can."
        ),
        ("web:account-erasure",),
    ),
    Topic(
        "members",
        _("A workspace holds a team's documents, conversations and people. No one outside can see them."),
        ("web:tenant-create",),
    ),
    Topic(
        "administration",
        _(
            "The state of the whole installation: health, queue, workers, backups and workspaces. "
            "Start with what needs you now."
        ),
        ("operate:overview",),
    ),
)
_BY_URL: Mapping[str, Topic] = {url: topic for topic in TOPICS for url in topic.urls}


def topic_of(url: str) -> Topic | None:
    """Return what the page of a URL is about, None for one without help.

    Args:
        url: the URL's name with its namespace.
    """
    return _BY_URL.get(url)
