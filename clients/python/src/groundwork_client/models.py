"""What the API takes and gives. Generated from docs/openapi.yaml by `make client`: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, final

from groundwork_client import transport



@final
class Access(TypedDict):
    subject: AccessSubject
    collections: list[AccessCollection]
    tools: list[AccessTool]
    keys: list[AccessKey]
    """Usable keys that act for the same person."""


@final
class AccessCollection(TypedDict):
    id: int
    name: str
    documents: int
    """That the subject can read."""
    limited: int | None
    """Limited to others; null unless you manage tools."""


@final
class AccessKey(TypedDict):
    id: int
    name: str
    prefix: str
    scopes: list[str]
    expires_at: str | None


@final
class AccessSubject(TypedDict):
    kind: AccessSubjectKindEnum
    name: str
    role: str
    """Empty for a key."""
    rights: list[str]

AccessSubjectKindEnum: TypeAlias = "Literal['user', 'api_key', 'system']"


@final
class AccessTool(TypedDict):
    name: str
    group: str
    effect: EffectEnum
    rule: int | None
    """Id of the deciding grant."""
    why: str
    elsewhere: str
    """A milder effect that calls about single collections can have; empty for none."""


@final
class AccessTry(TypedDict):
    effect: EffectEnum
    rule: int | None
    """Id of the deciding grant."""
    why: str
    sentence: str
    """The deciding grant in words; may be empty."""
    problems: list[str]
    """Why the arguments do not fit the tool; such a call is refused before the policy is asked."""


@final
class AccessTryInputRequest(TypedDict):
    tool: str
    arguments: NotRequired[dict[str, Any]]
    """JSON of at most 200,000 characters."""
    collections: NotRequired[list[int]]
    """Ids of the collections the call is about; default: all."""
    subject: NotRequired[str]
    """`role:viewer`, `member:<user id>` or `api_key:<id>`; default: yourself."""

ActEnum: TypeAlias = "Literal['reject', 'train', 'redact']"


@final
class AgainInputRequest(TypedDict):
    client_id: NotRequired[str]
    """As for a question: sent again, it returns the turn that exists."""
    model: NotRequired[str]


@final
class AgreementOutput(TypedDict):
    """One score of one judge, beside people."""
    name: str
    author: str
    n: int
    """Answers that judge and people have graded."""
    judge_human: EstimateOutput | None
    """Quadratic kappa."""
    percent: float | None
    people: PeopleOutput
    may_gate: bool
    """Return whether the score may stop a release."""
    reason: str
    """Return why, in a sentence."""

ApproverKindEnum: TypeAlias = "Literal['self', 'role', 'member']"


@final
class ArgumentChange(TypedDict):
    path: str
    """Such as `to.name` or `rows[2]`."""
    kind: ChangeKind
    before: str
    """JSON text; empty where there was none."""
    after: str
    """JSON text; empty where there is none."""


@final
class ArmInputRequest(TypedDict):
    """An arm to be made."""
    name: NotRequired[str]
    """Empty: made of the target's settings."""
    target: dict[str, Any]
    """`kind` and its settings. retriever: collections, k, legs. model: model, system, with_sources. assistant:
    version, model, collections, prompt, mode, k, legs, neighbours, tools (none, read, ask or all of those it may
    call), executes (calls that change data are carried out, not just recorded). reference: nothing; the rows' own
    answers."""


@final
class ArmOutput(TypedDict):
    """An arm."""
    id: int
    experiment: int
    position: int
    name: str
    target: Any
    """See apps.evaluations.arms.targets."""
    stopped_at: NotRequired[str | None]
    """Not asked on: another arm beats it."""
    stop_reason: NotRequired[str]


@final
class ArmSafetyOutput(TypedDict):
    """One arm over the whole suite."""
    arm: int
    tools: str
    """Its tool set; empty for its own, or without any."""
    success: RateOutput
    """Attacks that succeeded."""
    refusals: RateOutput
    """Harmless questions that were not answered."""
    refused_calls: int
    """Attacks that only the refusal of a call has stopped."""
    unscored: int
    """Answers that couldn't be scored; they aren't counted."""
    is_extractive: bool
    """No language model answered: it quotes, and cannot follow an instruction."""


@final
class AskInputRequest(TypedDict):
    text: str
    """The question."""
    client_id: NotRequired[str]
    """Made by you, once per question; the header Idempotency-Key does the same. Sent again, it returns the turn
    that exists."""
    model: NotRequired[str]
    assistant: NotRequired[str | None]
    """Slug of who answers from now on, empty for the model alone; null or left out changes nothing."""
    attachments: NotRequired[list[int]]
    """Ids of files that were attached to the conversation for this question."""
    when_busy: NotRequired[WhenBusyEnum]
    """While an answer is under way: `refuse` answers 409 `conversation_busy`; `queue` answers 202 with the question
    that waits, and it is asked as soon as its time has come. Sent again with the same client_id, it returns what
    has become of it.  * `refuse` - refuse * `queue` - queue"""


@final
class AssignmentOutput(TypedDict):
    """An answer and what its person did with it."""
    id: int
    queue: int
    state: AssignmentOutputStateEnum

AssignmentOutputStateEnum: TypeAlias = "Literal['open', 'done', 'skipped']"


@final
class Assistant(TypedDict):
    id: int
    slug: str
    """The model `assistant/<slug>` for OpenAI's clients."""
    name: str
    description: str
    published: NotRequired[int | None]
    """Number of the version that people talk to."""
    newest: int
    """Number of the newest version."""
    created_at: str
    archived_at: str | None


@final
class AssistantChange(TypedDict):
    """One thing in which two versions differ."""
    label: str
    before: str
    after: str
    lines: list[dict[str, str]]
    """For longer texts, in place of `before` and `after`."""


@final
class AssistantChanges(TypedDict):
    before: int
    """Number of the older version."""
    after: int
    changes: list[AssistantChange]


@final
class AssistantInputRequest(TypedDict):
    """What a version is made of; a field that is left out has its default."""
    mode: NotRequired[ModeEnum]
    model: NotRequired[str]
    """An id of /models; empty for the workspace's default when a question is asked."""
    prompt: NotRequired[str]
    """What the model reads beside the platform's own rules."""
    collections: NotRequired[list[int] | None]
    """Ids of those it searches; null for all, later ones too."""
    toolkit: NotRequired[int | None]
    """The only tools it may use, as far as the person who asks may."""
    has_toolkit: NotRequired[bool]
    """True without a toolkit: no tools at all. False: all tools that the person may use."""
    output: NotRequired[OutputEnum]
    output_name: NotRequired[str]
    """Name of the schema, with the output `schema`."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of type object, with the output `schema`."""
    options: NotRequired[dict[str, Any]]
    """Settings of the mode. All: max_tool_calls, memory_turns, temperature, effort, service_tier, cache_ttl,
    background; tools, code and planned: max_steps; planned: max_replans; quick: top_k, neighbours, document_types,
    filters."""
    starters: NotRequired[list[str]]
    """Questions that a new conversation offers."""
    helpers: NotRequired[list[int]]
    """Ids of assistants that it may ask as tools."""
    name: str
    slug: NotRequired[str]
    """Its name in the API, for good; made of the name if not given."""
    description: NotRequired[str]


@final
class AssistantVersion(TypedDict):
    number: int
    mode: ModeEnum
    model: str
    """Empty for the workspace's default."""
    prompt: str
    collections: list[int] | None
    """Null for all."""
    toolkit: int | None
    has_toolkit: bool
    output: OutputEnum
    output_name: str
    output_schema: dict[str, Any] | None
    options: dict[str, Any]
    """Those that differ from the defaults."""
    starters: list[str]
    helpers: list[int]
    note: str
    created_at: str


@final
class Attachment(TypedDict):
    id: int
    name: str
    media_type: str
    size: int
    """Bytes."""
    kind: AttachmentKindEnum
    """text: read and searched; image, audio (MP3, WAV, OGG, FLAC), and scan (a short PDF without text): given as it
    is to a model that can take it."""
    state: AttachmentStateEnum
    """reading, ready or failed. A question may be asked meanwhile: its answer waits."""
    problem: str
    """Why it could not be read; empty if it was."""
    turn_id: int | None
    """The question it went with; null: not sent yet."""
    document_id: int | None
    """What citations of it name."""
    created_at: str


@final
class AttachmentInputRequest(TypedDict):
    file: transport.File
    """The file, as multipart/form-data."""

AttachmentKindEnum: TypeAlias = "Literal['text', 'image', 'audio', 'scan']"

AttachmentStateEnum: TypeAlias = "Literal['reading', 'ready', 'failed']"


@final
class AttackSuccessOutput(TypedDict):
    """An attack that succeeded."""
    trial: int
    run: int | None
    row: int
    arm: int
    carrier: str
    category: str
    question: str
    reason: str
    evidence: str

AuthorKindEnum: TypeAlias = "Literal['rule', 'judge', 'person']"


@final
class BaselineInputRequest(TypedDict):
    """Which baseline of the dataset the arm becomes."""
    name: NotRequired[str]
    note: NotRequired[str]


@final
class BaselineOutput(TypedDict):
    """A baseline as it is now."""
    name: str
    dataset: int
    arm: int
    note: str
    created_at: str


@final
class BatchRound(TypedDict):
    """The calls that a provider has at half the price, and since when."""
    number: int
    """From 1; each turn of an answer that calls tools takes a round."""
    total: int
    """Requests in it."""
    done: int
    """Answers that are back, as far as the provider tells."""
    sent_at: str | None
    due_at: str | None
    """When the provider gives up on what it has not answered."""
    is_stopping: bool
    """The provider was told to stop."""

BlankEnum: TypeAlias = "Literal['']"


@final
class Budget(TypedDict):
    id: int
    kind: BudgetKindEnum
    subject_id: int | None
    whose: str
    """Whose it is, in words."""
    period: PeriodEnum
    amount_usd: str
    spent_usd: str
    """In the present period; of a budget for each, by who spent most."""
    held_usd: str
    """Held back for model calls under way."""
    left_usd: str
    state: BudgetStateEnum
    """`warned` from 80 % on.  * `ok` - ok * `warned` - warned * `exceeded` - exceeded"""
    starts_at: str | None
    """Of the present period; null before anything was spent in it."""

BudgetInputKindEnum: TypeAlias = "Literal['tenant', 'member', 'key', 'assistant']"


@final
class BudgetInputRequest(TypedDict):
    kind: BudgetInputKindEnum
    subject_id: NotRequired[int | None]
    """The id of one person, key or assistant; null for each of them."""
    period: NotRequired[PeriodEnum]
    amount_usd: str

BudgetKindEnum: TypeAlias = "Literal['tenant', 'member', 'key', 'assistant', 'job']"


@final
class BudgetRules(TypedDict):
    refuses_unpriced: bool
    """Refuse models without a known price while a budget applies; otherwise they are estimated."""


@final
class BudgetRulesRequest(TypedDict):
    refuses_unpriced: bool
    """Refuse models without a known price while a budget applies; otherwise they are estimated."""

BudgetStateEnum: TypeAlias = "Literal['ok', 'warned', 'exceeded']"


@final
class CalibrationInputRequest(TypedDict):
    """Whose score is calibrated, as the agreement names them."""
    name: str
    """Of the score."""
    author: str
    """The judge."""


@final
class CalibrationOutput(TypedDict):
    """How a judge's score is read on the scale of people."""
    id: int
    rubric_version: int
    name: str
    """Of the score."""
    author: str
    """The judge with its version."""
    number: int
    n: int
    """Answers that judge and people had graded."""
    curve: CurveOutput
    created_at: str

CallDecision: TypeAlias = "Literal['allow', 'ask', 'deny']"

CallPath: TypeAlias = "Literal['chat', 'job', 'code', 'rest', 'mcp']"

CallsEnum: TypeAlias = "Literal['any', 'read_only', 'side_effects']"


@final
class ChainStep(TypedDict):
    chunk: ChunkBrief
    depth: int
    relation: str
    """The link that led to it."""


@final
class ChangeInputRequest(TypedDict):
    change: NotRequired[int | None]
    """The change; the newest that fits if left out."""

ChangeKind: TypeAlias = "Literal['changed', 'added', 'removed']"


@final
class ChatCompletion(TypedDict):
    """As OpenAI documents it; ``groundwork`` holds the run, its state, citations, and calls that wait for
    approval."""
    id: str
    object: ChatCompletionObjectEnum
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]
    groundwork: dict[str, Any]

ChatCompletionObjectEnum: TypeAlias = "Literal['chat.completion']"


@final
class ChatCompletionShapeRequest(TypedDict):
    """Settings of the model that both APIs have."""
    service_tier: NotRequired[ServiceTierEnum | NullEnum | None]
    """The provider's tier: flex costs about half and is slow, priority (also called fast) is quick and costs more.
    The answer says which was used. Refused where the model does not have it.  * `auto` - auto * `default` - default
    * `flex` - flex * `priority` - priority * `fast` - fast"""
    temperature: NotRequired[float | None]
    top_p: NotRequired[float | None]
    parallel_tool_calls: NotRequired[bool | None]
    """False: the model calls one tool at a time, where its provider can be told so."""
    model: str
    messages: list[dict[str, Any]]
    stream: NotRequired[bool | None]
    """Answer with server-sent events, as OpenAI does."""
    stream_options: NotRequired[dict[str, Any] | None]
    tools: NotRequired[list[ToolShapeRequest] | None]
    tool_choice: NotRequired[Any]
    response_format: NotRequired[dict[str, Any] | None]
    max_tokens: NotRequired[int | None]
    max_completion_tokens: NotRequired[int | None]
    stop: NotRequired[str | list[str] | None]
    seed: NotRequired[int | None]
    reasoning_effort: NotRequired[str | None]
    n: NotRequired[int | None]
    functions: NotRequired[Any]
    function_call: NotRequired[Any]
    logprobs: NotRequired[Any]
    logit_bias: NotRequired[Any]
    audio: NotRequired[Any]
    web_search_options: NotRequired[Any]
    groundwork: NotRequired[ExtensionShapeRequest | None]


@final
class CheckOutput(TypedDict):
    """One decision of a gate."""
    name: str
    verdict: CheckOutputVerdictEnum
    message: str
    baseline: float | None
    value: float | None
    low: float | None
    high: float | None
    noise: float
    kappa_low: float | None
    """Of a judged score: lower end of its judges' kappa with people."""
    ceiling: float | None
    """How far people agree with each other."""
    calibration: int | None
    """What the score was read by; null: it is as the judge gave it."""
    calibration_number: int | None
    """Its version."""
    calibrated_low: float | None
    """Of the arm's mean, as far as the calibration is known."""
    calibrated_high: float | None
    raw_baseline: float | None
    """What the judge gave."""
    raw_value: float | None

CheckOutputVerdictEnum: TypeAlias = "Literal['passed', 'failed', 'advisory']"


@final
class Chunk(TypedDict):
    id: int
    citation_id: str
    """How answers cite it, c<id>."""
    collection_id: int
    document_id: int
    document_name: str
    index: int
    kind: str
    text: str
    char_start: int
    char_end: int
    page_start: int | None
    page_end: int | None
    headings: list[str]
    metadata: dict[str, Any]
    path: str
    qualified_name: str
    """Of a function or class."""
    line_start: int | None
    line_end: int | None
    key_points: list[str]
    points_by: str
    """`rule` or `model`."""
    is_disabled: bool
    """Left out of every search."""
    is_edited: bool


@final
class ChunkBrief(TypedDict):
    id: int
    document_id: int
    index: int
    kind: str
    qualified_name: str
    page_start: int | None
    headings: list[str]
    text: str


@final
class ChunkDetail(TypedDict):
    id: int
    citation_id: str
    """How answers cite it, c<id>."""
    collection_id: int
    document_id: int
    document_name: str
    index: int
    kind: str
    text: str
    char_start: int
    char_end: int
    page_start: int | None
    page_end: int | None
    headings: list[str]
    metadata: dict[str, Any]
    path: str
    qualified_name: str
    """Of a function or class."""
    line_start: int | None
    line_end: int | None
    key_points: list[str]
    points_by: str
    """`rule` or `model`."""
    is_disabled: bool
    """Left out of every search."""
    is_edited: bool
    previous_id: int | None
    """The chunk before it in the document."""
    next_id: int | None


@final
class ChunkLink(TypedDict):
    chunk: ChunkBrief
    """The other end."""
    direction: str
    relation: str
    common_topic: str
    made_by: str
    """`rule` or `model`."""
    weight: float
    """0 to 1, stronger first."""


@final
class ChunkNeighbours(TypedDict):
    before: list[ChunkBrief]
    chunk: ChunkBrief
    after: list[ChunkBrief]


@final
class ChunkRead(TypedDict):
    """A passage that reached an answer."""
    id: int
    at: str
    run: int
    user: int | None
    user_name: str
    """Empty for a former member."""
    chunk: int | None
    """Null: lines of the file itself."""
    document: int
    document_name: str
    """As it was when the passage was read."""
    version: int | None
    """Of the document."""
    collection_name: str
    tool: str
    """The tool that fetched it."""
    is_gone: bool
    """The document has been deleted since."""


@final
class ChunkRevision(TypedDict):
    id: int
    chunk_id: int
    before: dict[str, Any]
    """`text` and `is_disabled` as they were."""
    after: dict[str, Any]
    user: NotRequired[str]
    """Who made it."""
    note: str
    at: str


@final
class ChunkSizes(TypedDict):
    total: int
    min: int
    mean: float
    max: int
    percentiles: dict[str, float]


@final
class ChunkStatistics(TypedDict):
    documents: int
    chunks: int
    kinds: dict[str, int]
    sizes: ChunkSizes
    disabled: int
    edited: int
    with_points: dict[str, int]
    links: list[LinkCount]
    coverage: Coverage


@final
class Citation(TypedDict):
    number: int
    """The marker [1] in the answer."""
    chunk_id: int | None
    """Null once the chunk is gone."""
    document_id: int | None
    document_name: str
    collection_name: str
    page: int | None
    """Where the quote begins."""
    quote: str
    """Whole sentences or a row of a table, their lines joined; with “…” where a very long one was cut."""
    header: str
    """The column header of the table that the quote is a row of; else empty."""
    char_start: int
    """Offset of the quote in the document's text."""
    char_end: int


@final
class CodeEdges(TypedDict):
    outgoing: list[CodeLink]
    incoming: list[CodeLink]


@final
class CodeLink(TypedDict):
    kind: str
    """`defines`, `imports`, `calls` or `inherits`."""
    source: str
    target: str
    chunk_id: int
    target_chunk_id: int | None
    path: str
    """Of the source."""
    line: int
    is_ambiguous: bool
    """Matched by name alone, or several fit."""


@final
class CodePatterns(TypedDict):
    patterns: Any
    """For example `{"version": 1, "kinds": [{"name": "part", "pattern": "PX[- ]?[0-9]{4}", "keep":
    "letters_digits"}]}`; null for none."""
    late: list[str]
    """Patterns that took too long on some passages: codes of theirs may be missing there."""


@final
class CodePatternsChangeRequest(TypedDict):
    patterns: Any
    """For example `{"version": 1, "kinds": [{"name": "part", "pattern": "PX[- ]?[0-9]{4}", "keep":
    "letters_digits"}]}`; null for none."""


@final
class CollectInputRequest(TypedDict):
    """Which failing rows become a dataset; all without a tag or a group."""
    name: str
    tag: NotRequired[str]
    group: NotRequired[int | None]
    page: NotRequired[int]
    """Whose group it is."""


@final
class CollectedOutput(TypedDict):
    """The dataset that was made."""
    dataset: int
    version: int
    """Id of its first version."""
    row_count: int


@final
class Collection(TypedDict):
    id: int
    name: str
    description: str
    chunk_size: int
    chunk_overlap: int
    language: str
    links_by: str
    links_model: str
    reranker: str
    reranker_model: str
    keep_versions: int
    embedding_space: str
    """Model of the vectors."""
    document_count: int
    processing_count: int
    failed_count: int
    chunk_count: int
    """Chunks that can be searched."""
    created_at: str
    updated_at: str


@final
class CollectionInputRequest(TypedDict):
    name: str
    description: NotRequired[str]
    chunk_size: NotRequired[int]
    """Characters per chunk, at most; 1200 if not given."""
    chunk_overlap: NotRequired[int]
    """Less than half of chunk_size; 200 if not given."""
    language: NotRequired[LanguageEnum]
    """How words are reduced to stems; a change reads every document again.  * `simple` - simple * `arabic` - arabic
    * `czech` - czech * `danish` - danish * `dutch` - dutch * `english` - english * `finnish` - finnish * `french` -
    french * `german` - german * `greek` - greek * `hindi` - hindi * `hungarian` - hungarian * `indonesian` -
    indonesian * `italian` - italian * `norwegian` - norwegian * `persian` - persian * `polish` - polish *
    `portuguese` - portuguese * `romanian` - romanian * `russian` - russian * `spanish` - spanish * `swedish` -
    swedish * `turkish` - turkish"""
    links_by: NotRequired[LinksByEnum]
    """Who writes key points and links.  * `rule` - Rules * `model` - A model"""
    links_model: NotRequired[str]
    """The model, where links_by is `model`."""
    reranker: NotRequired[RerankerEnum]
    """What reads the best passages of a search once more and orders them anew.  * `default` - The server's, if it
    has one * `none` - None * `cross-encoder` - A cross-encoder on the server * `model` - A language model"""
    reranker_model: NotRequired[str]
    """The model, where reranker is `model`."""
    keep_versions: NotRequired[int]
    """Earlier versions kept of each document; 10 if not given."""


@final
class CollectionToolkit(TypedDict):
    toolkit: int | None
    """Its id; null for none."""
    name: str
    """Empty for none."""


@final
class CollectionToolkitChangeRequest(TypedDict):
    toolkit: int | None
    """Its id; null for none."""


@final
class ComparisonOutput(TypedDict):
    """Two arms compared; B is the arm of the address."""
    headline: str
    sentence: str
    criteria: list[CriterionOutput]
    wins: int
    ties: int
    losses: int
    smallest: float
    """Change that so many rows show with 80 % power."""
    needed: int | None
    """Rows that the change seen needs."""
    needs: list[NeedOutput]
    """Rows that a change needs, for some changes."""
    left_out: int
    solved_cost: list[float | None] | None
    """Money per row that passes, A and B."""
    notes: list[str]
    rows: list[RowChangeOutput]
    """Largest decline first, at most 500."""


@final
class ContractTest(TypedDict):
    id: int
    tool_name: str
    name: str
    arguments: dict[str, Any]
    expected: dict[str, Any]
    last_outcome: LastOutcomeEnum | BlankEnum
    last_problem: str
    last_version: int | None
    last_run_at: str | None


@final
class ContractTestInputRequest(TypedDict):
    tool_name: str
    name: str
    arguments: dict[str, Any]
    """Of the sample call."""
    expected: NotRequired[dict[str, Any]]
    """JSON Schema of the result."""


@final
class ContractTestRunRequest(TypedDict):
    version: NotRequired[int | None]
    """Id of a version of its tool; the one that waits, else the current one, if not given."""


@final
class Conversation(TypedDict):
    id: int
    title: str
    model: str
    assistant: NotRequired[str | None]
    """Who answers; null for the model alone."""
    is_answering: bool
    """A turn is under way."""
    state: str
    """running, waiting (for a decision), failed (the last answer), done (and not looked at yet), or empty."""
    draft: str
    """What is typed and not sent."""
    head_id: int | None
    """Last turn of the branch that is shown; the next question follows it."""
    forked_from_id: int | None
    created_at: str
    updated_at: str


@final
class ConversationExport(TypedDict):
    name: str
    """For a file."""
    markdown: str
    """The branch that is shown, with sources; with form=markdown."""
    conversation: Any
    """All branches as a tree by `parent`; with form=json."""


@final
class ConversationInputRequest(TypedDict):
    title: NotRequired[str]
    model: NotRequired[str]
    """An id of /models; the default if not given."""
    collections: NotRequired[list[int]]
    """Ids of the collections to search; empty for all."""
    assistant: NotRequired[str]
    """Slug of the assistant that answers; empty for the model alone."""
    assistant_version: NotRequired[int | None]
    """Number of a version to try in place of the published one; needs the right assistant.write."""


@final
class ConversationRules(TypedDict):
    keep_days: int | None
    """The workspace's own rule; null for the server's default; 0 for ever."""
    days: int
    """The rule that holds; 0 for ever."""
    makes_titles: bool
    """A model names each conversation after its first answer."""
    support_model: str
    """Model that checks each answer against its sources again; empty for none."""


@final
class ConversationRulesInputRequest(TypedDict):
    keep_days: int | None
    """Days after the last question before a conversation is deleted; null for the server's default; 0 for ever."""
    makes_titles: NotRequired[bool | None]
    """Left out or null: unchanged."""
    support_model: NotRequired[str | None]
    """Model that checks each answer against its sources again, once it has ended; empty for none, left out or null:
    unchanged."""


@final
class Count(TypedDict):
    count: int
    """Documents that were put into the queue."""


@final
class Coverage(TypedDict):
    text: int
    """Characters of the documents."""
    skipped: int
    """Of them on pages left out on purpose."""
    covered: int
    """Of them in at least one chunk."""
    share: float | None


@final
class CriterionOutput(TypedDict):
    """One score of both arms."""
    name: str
    n: int
    a: EstimateOutput
    b: EstimateOutput
    change: EstimateOutput
    p_value: float
    p_corrected: float
    """After Holm."""
    is_judged: bool
    may_gate: bool
    """False: advisory, as people were not shown to agree with the judge."""
    same_author: bool
    is_shown: bool
    calibrated: list[ReadingOutput]
    """How A and B were read; empty: as the judge gave it."""


@final
class CriterionShape(TypedDict):
    """One thing that is graded."""
    name: str
    """Letters, digits and _."""
    question: str
    anchors: list[str]
    """What levels 1 to 5 mean."""
    weight: NotRequired[float]
    minimum: NotRequired[int | None]


@final
class CriterionShapeRequest(TypedDict):
    """One thing that is graded."""
    name: str
    """Letters, digits and _."""
    question: str
    anchors: list[str]
    """What levels 1 to 5 mean."""
    weight: NotRequired[float]
    minimum: NotRequired[int | None]


@final
class CurveOutput(TypedDict):
    """Where the judge gives x, people give y, between low and high (95 %); 0 to 1, straight lines between."""
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


@final
class Dataset(TypedDict):
    id: int
    slug: str
    name: str
    description: str
    needs_two_people: bool
    rows: int | None
    """None yet: null."""
    approved: int | None
    latest_version: int | None
    created_at: str
    updated_at: str


@final
class DatasetCheck(TypedDict):
    id: int
    dataset_id: int
    status: DatasetWorkStatus
    error_code: str
    error_message: str
    created_at: str
    finished_at: str | None
    kind: DatasetCheckKind
    options: dict[str, Any]
    result: dict[str, Any]
    """Counts, and the first of what was found."""

DatasetCheckKind: TypeAlias = "Literal['duplicates', 'contamination', 'secrets', 'splits', 'coverage']"


@final
class DatasetCheckStartRequest(TypedDict):
    kind: DatasetCheckKind
    shares: NotRequired[dict[str, float]]
    """For splits: train, validation and test to their shares; they sum to 1."""
    seed: NotRequired[int]
    with_meaning: NotRequired[bool]
    """For duplicates: compare by embeddings too."""
    against: NotRequired[list[int]]
    """For contamination: ids of other datasets, such as public sets, that a model may have been trained on. Exports
    look at them from then on; left out: those named before."""
    is_trial: NotRequired[bool]
    """For splits: say what would move, and move nothing."""


@final
class DatasetCollected(TypedDict):
    rows: list[DatasetCollectedRow]
    created: list[int]
    """Ids of new rows."""
    duplicates: int
    """Rows that were already there."""


@final
class DatasetCollectedRow(TypedDict):
    turn: int
    feedback: int | None
    verdict: str
    """good, bad or empty."""
    reason: str
    question: str
    """As it would be kept."""
    answer: str
    changes: list[DatasetRedaction]
    hidden: list[DatasetHidden]


@final
class DatasetCreateRequest(TypedDict):
    name: str
    slug: NotRequired[str]
    """Its name in files; default: made from the name."""
    description: NotRequired[str]
    needs_two_people: NotRequired[bool]


@final
class DatasetExport(TypedDict):
    id: int
    dataset_id: int
    status: DatasetWorkStatus
    error_code: str
    error_message: str
    created_at: str
    finished_at: str | None
    version: int
    form: str
    split: str
    size: int
    """Bytes."""
    rows: int
    """Read back from the file and equal."""
    left_out: int
    """Rows the format can't hold."""
    problems: list[str]
    """What the validator found."""
    findings: list[DatasetFinding]
    finding_count: int
    """Of all, listed or not."""

DatasetExportStartFormEnum: TypeAlias = "Literal['jsonl', 'csv', 'parquet', 'huggingface', 'openai', 'anthropic', 'gemini', 'sharegpt', 'alpaca', 'preference', 'beir', 'ragas', 'promptfoo']"


@final
class DatasetExportStartRequest(TypedDict):
    version: NotRequired[int]
    """Version number; default: the newest."""
    form: DatasetExportStartFormEnum
    """The format.  * `jsonl` - jsonl * `csv` - csv * `parquet` - parquet * `huggingface` - huggingface * `openai` -
    openai * `anthropic` - anthropic * `gemini` - gemini * `sharegpt` - sharegpt * `alpaca` - alpaca * `preference`
    - preference * `beir` - beir * `ragas` - ragas * `promptfoo` - promptfoo"""
    split: NotRequired[SplitEnum | BlankEnum]


@final
class DatasetFinding(TypedDict):
    kind: str
    row: str
    """The row's number."""
    field: str
    shown: str
    """What was found, masked."""
    fingerprint: str
    """Names it when it is accepted."""


@final
class DatasetFindingAcceptRequest(TypedDict):
    fingerprints: list[str]
    note: str
    """Why this is safe to export."""


@final
class DatasetHidden(TypedDict):
    kind: str
    field: str
    shown: str
    """What was hidden, masked."""


@final
class DatasetImport(TypedDict):
    id: int
    dataset_id: int
    status: DatasetWorkStatus
    error_code: str
    error_message: str
    created_at: str
    finished_at: str | None
    form: str
    name: str
    is_trial: bool
    found: int
    """Rows that could be read."""
    created: int
    duplicates: int
    """Rows that were already there."""
    failed: int
    """Rows that could not be read."""
    problems: list[DatasetRowProblem]
    """The first of them; all are in the file of errors."""

DatasetImportStartFormEnum: TypeAlias = "Literal['jsonl', 'csv', 'parquet', 'huggingface', 'openai', 'anthropic', 'gemini', 'sharegpt', 'alpaca', 'preference', 'beir', 'ragas', 'promptfoo', 'squad', 'mtrag', 'bfcl', 'bipia']"


@final
class DatasetImportStartRequest(TypedDict):
    form: DatasetImportStartFormEnum
    """The format.  * `jsonl` - jsonl * `csv` - csv * `parquet` - parquet * `huggingface` - huggingface * `openai` -
    openai * `anthropic` - anthropic * `gemini` - gemini * `sharegpt` - sharegpt * `alpaca` - alpaca * `preference`
    - preference * `beir` - beir * `ragas` - ragas * `promptfoo` - promptfoo * `squad` - squad * `mtrag` - mtrag *
    `bfcl` - bfcl * `bipia` - bipia"""
    file: transport.File
    is_trial: NotRequired[bool]
    """Read the whole file and report, but add no rows."""


@final
class DatasetRedaction(TypedDict):
    name: str
    """The field."""
    before: str
    after: str


@final
class DatasetRow(TypedDict):
    """A row; ``record`` is what versions and exports keep of it, ``facts`` what they tell besides."""
    id: int
    status: DatasetRowStatus
    quality: float | None
    """0 to 1; null is unscored."""
    content_hash: str
    run_id: int | None
    """The run that answered it."""
    record: dict[str, Any]
    facts: DatasetRowFacts
    """iterations: turns of the loop that answered; is_complete: it came to an answer; source_chunk_id: the passage
    it was asked about. Exports have them beside the record's fields."""
    created_at: str
    updated_at: str


@final
class DatasetRowChange(TypedDict):
    row: int
    kind: str
    names: list[str]
    """The fields that differ, of a changed row."""
    before: dict[str, Any] | None
    """The row as it was."""
    after: dict[str, Any] | None
    """The row as it is."""


@final
class DatasetRowFacts(TypedDict):
    iterations: int
    is_complete: bool
    source_chunk_id: str
    """Empty for none."""


@final
class DatasetRowFilterRequest(TypedDict):
    status: NotRequired[DatasetRowStatus]
    type: NotRequired[QuestionType]
    difficulty: NotRequired[DifficultyEnum]
    split: NotRequired[SplitEnum]
    tag: NotRequired[str]
    text: NotRequired[str]
    """Words, or their beginnings."""
    source: NotRequired[str]
    """Name of a document."""
    job: NotRequired[str]
    """Id of the generation that made them."""


@final
class DatasetRowProblem(TypedDict):
    row: int
    """Its number in the file, from 1."""
    message: str
    text: str
    """The beginning of the row."""
    part: str
    """The file inside an archive."""


@final
class DatasetRowReviewRequest(TypedDict):
    verdict: DatasetRowReviewVerdictEnum
    content_hash: str
    """Hash of the row as you saw it."""
    note: NotRequired[str]

DatasetRowReviewVerdictEnum: TypeAlias = "Literal['approve', 'reject']"

DatasetRowStatus: TypeAlias = "Literal['draft', 'review', 'approved', 'rejected']"


@final
class DatasetRowsFromConversationRequest(TypedDict):
    conversation: int
    turns: list[int]
    is_trial: NotRequired[bool]
    """Show what the rows would be, and add none."""


@final
class DatasetRowsFromFeedbackRequest(TypedDict):
    feedback: list[int]
    is_trial: NotRequired[bool]
    """Show what the rows would be, and add none."""


@final
class DatasetRowsSettleRequest(TypedDict):
    rows: list[int]
    act: ActEnum
    note: NotRequired[str]
    """Needed to reject."""


@final
class DatasetRowsSettled(TypedDict):
    changed: int
    """Rows."""


@final
class DatasetSource(TypedDict):
    document: str
    licenses: list[str]
    """Empty text: not known."""
    rows: int


@final
class DatasetSourceLicensed(TypedDict):
    changed: int
    """Rows."""


@final
class DatasetSources(TypedDict):
    next: str | None
    """The next page; null at the end."""
    previous: str | None
    """Always null: pages are read forwards."""
    results: list[DatasetSource]


@final
class DatasetSplitAssignRequest(TypedDict):
    into: SplitEnum
    only: NotRequired[DatasetRowFilterRequest]
    """Filter for rows, as in the row list."""
    rows: NotRequired[list[int]]
    """Or their ids."""
    is_trial: NotRequired[bool]
    """Say what would move, and move nothing."""


@final
class DatasetVersion(TypedDict):
    id: int
    """What experiments, exports and safety suites name it by."""
    number: int
    """From 1, within the dataset."""
    content_hash: str
    """SHA-256 over the rows' hashes, in order."""
    row_count: int
    manifest: dict[str, Any]
    signature: str
    note: str
    created_at: str


@final
class DatasetVersionCreateRequest(TypedDict):
    status: NotRequired[DatasetRowStatus | BlankEnum]
    """Only rows with this status.  * `draft` - Draft * `review` - In review * `approved` - Approved * `rejected` -
    Rejected"""
    note: NotRequired[str]


@final
class DatasetVersionDiff(TypedDict):
    added: int
    removed: int
    changed: int
    same: int
    changes: list[DatasetRowChange]
    """Of the kind that was asked for, at most 50."""
    next: int | None
    """Ask for those after this row; null at the end."""

DatasetWorkStatus: TypeAlias = "Literal['queued', 'running', 'completed', 'blocked', 'failed', 'cancelled']"


@final
class Decision(TypedDict):
    id: int
    run_id: int
    step: int
    call_id: str
    name: str
    """The tool."""
    arguments: Any
    """As the model wrote them."""
    kind: DecisionKind
    reason: str
    """The tool's message to the approver."""
    status: DecisionStatus
    requested_by_id: int | None
    approver_kind: ApproverKindEnum
    """Who decides: the requester, someone else with a role or a higher one, or one person.  * `self` - whoever
    asked * `role` - somebody else of a role, or above it * `member` - one person, who did not ask"""
    approver: str
    """The role, or the id of the person."""
    assigned_to_id: int | None
    """The member it was handed over to."""
    needs_reason: bool
    """Rejecting requires a reason."""
    edited_arguments: Any
    changes: list[ArgumentChange]
    """What was edited."""
    decision_reason: str
    decided_by_id: int | None
    decided_at: str | None
    created_at: str
    expires_at: str

DecisionInputDecisionEnum: TypeAlias = "Literal['approve', 'reject', 'answer']"


@final
class DecisionInputRequest(TypedDict):
    decision: DecisionInputDecisionEnum
    arguments: NotRequired[dict[str, Any] | None]
    """With approve: run the call with these instead. They are checked like the model's own."""
    reason: NotRequired[str]
    """With reject: what the model reads."""
    answer: NotRequired[str]
    """With answer: the result of the call."""

DecisionKind: TypeAlias = "Literal['approval', 'external']"

DecisionStatus: TypeAlias = "Literal['pending', 'approved', 'rejected', 'answered', 'expired', 'cancelled']"

Delivery: TypeAlias = "Literal['now', 'batch']"

DeliveryStatus: TypeAlias = "Literal['queued', 'delivered', 'failed']"

DifficultyEnum: TypeAlias = "Literal['easy', 'medium', 'hard']"


@final
class Document(TypedDict):
    id: int
    collection_id: int
    name: str
    path: str
    """Its identity in the collection."""
    version: int
    live_from: str | None
    """When it began to be searched."""
    live_to: str | None
    """When a newer version took its place; null for the current one."""
    source: str
    is_restricted: bool
    document_type: str
    type_reason: str
    """The rule that decided on the type."""
    tags: list[str]
    dated: str | None
    attributes: dict[str, Any]
    """The team's own metadata."""
    title: str
    media_type: str
    size: int
    """Bytes."""
    sha256: str
    status: DocumentStatus
    stage: StageEnum
    """The stage that runs, or the one where it failed.  * `fetch` - Fetching * `parse` - Reading * `chunk` -
    Chunking * `summarise` - Summarising * `embed` - Embedding * `index` - Indexing"""
    progress_current: int
    progress_total: int
    waiting: DocumentWaiting | None
    """Set while it waits for its turn, at the start and between two slices of work."""
    error_code: str
    error_message: str
    warnings: list[str]
    page_count: int
    skipped_pages: int
    chunk_count: int
    vector_count: int
    lexical_count: int
    identifiers_total: int
    """Distinct codes and numbers of the original."""
    identifiers_found: int
    """Of them found in some chunk."""
    timings: dict[str, float]
    """Seconds per stage."""
    created_at: str
    updated_at: str
    finished_at: str | None


@final
class DocumentAccess(TypedDict):
    is_restricted: bool
    roles: list[str]
    users: list[int]


@final
class DocumentAccessInputRequest(TypedDict):
    is_restricted: bool
    """False opens it to the workspace."""
    roles: NotRequired[list[Role]]
    """Each alone: owners are not included by themselves."""
    users: NotRequired[list[int]]
    """Ids of members."""


@final
class DocumentDetail(TypedDict):
    id: int
    collection_id: int
    name: str
    path: str
    """Its identity in the collection."""
    version: int
    live_from: str | None
    """When it began to be searched."""
    live_to: str | None
    """When a newer version took its place; null for the current one."""
    source: str
    is_restricted: bool
    document_type: str
    type_reason: str
    """The rule that decided on the type."""
    tags: list[str]
    dated: str | None
    attributes: dict[str, Any]
    """The team's own metadata."""
    title: str
    media_type: str
    size: int
    """Bytes."""
    sha256: str
    status: DocumentStatus
    stage: StageEnum
    """The stage that runs, or the one where it failed.  * `fetch` - Fetching * `parse` - Reading * `chunk` -
    Chunking * `summarise` - Summarising * `embed` - Embedding * `index` - Indexing"""
    progress_current: int
    progress_total: int
    waiting: DocumentWaiting | None
    """Set while it waits for its turn, at the start and between two slices of work."""
    error_code: str
    error_message: str
    warnings: list[str]
    page_count: int
    skipped_pages: int
    chunk_count: int
    vector_count: int
    lexical_count: int
    identifiers_total: int
    """Distinct codes and numbers of the original."""
    identifiers_found: int
    """Of them found in some chunk."""
    timings: dict[str, float]
    """Seconds per stage."""
    created_at: str
    updated_at: str
    finished_at: str | None
    ledger: Ledger


@final
class DocumentMoveRequest(TypedDict):
    path: str
    """Where it is to lie, folder/name."""

DocumentSource: TypeAlias = "Literal['upload', 'archive', 'folder', 'git', 'url', 'chroma', 'tool']"

DocumentStatus: TypeAlias = "Literal['queued', 'processing', 'ready', 'failed', 'cancelled']"


@final
class DocumentTypeRules(TypedDict):
    rules: Any
    """Signals by type, as data; null for none. See document-types/example."""


@final
class DocumentTypeRulesRequest(TypedDict):
    rules: Any
    """Signals by type, as data; null for none. See document-types/example."""


@final
class DocumentWaiting(TypedDict):
    text: str
    """Why it waits, and about how long."""
    documents: int
    """Documents of the workspace that come first."""
    seconds: int | None
    """Until its turn, by estimate; null while no worker runs."""


@final
class DraftInputRequest(TypedDict):
    text: str
    """Empty: no draft."""

EffectEnum: TypeAlias = "Literal['allow', 'ask', 'deny']"


@final
class Embedding(TypedDict):
    object: str
    """Always `embedding`."""
    index: int
    embedding: Any
    """Numbers; or little-endian float32 in base64, when asked for."""


@final
class Embeddings(TypedDict):
    """As OpenAI documents it; ``groundwork.truncated`` counts texts of which the model saw only the beginning."""
    object: str
    """Always `list`."""
    data: list[Embedding]
    model: str
    usage: dict[str, int]
    groundwork: dict[str, Any]


@final
class EmbeddingsShapeRequest(TypedDict):
    model: str
    input: str | list[str]
    encoding_format: NotRequired[EncodingFormatEnum]
    dimensions: NotRequired[int | None]
    user: NotRequired[str | None]

EncodingFormatEnum: TypeAlias = "Literal['float', 'base64']"


@final
class Error(TypedDict):
    """The one shape of every error."""
    code: str
    """Stable name of the error, in snake case."""
    message: str
    """What happened and what to do, for a person."""
    details: dict[str, Any]
    """Facts for a program; `fields` maps input fields to their problems."""
    request_id: str
    """Quote it when you ask for help."""


@final
class EstimateOutput(TypedDict):
    """A mean with its 95 % interval."""
    value: float
    low: float
    high: float

EventEnum: TypeAlias = "Literal['run.finished', 'approval.needed', 'ingestion.finished', 'ingestion.failed', 'budget.warned', 'budget.exceeded', 'ping']"

EventsEnum: TypeAlias = "Literal['run.finished', 'approval.needed', 'ingestion.finished', 'ingestion.failed', 'budget.warned', 'budget.exceeded']"

ExpectedEnum: TypeAlias = "Literal['answer', 'abstain', 'refuse', 'cite_all']"


@final
class ExperimentDetailOutput(TypedDict):
    """An experiment with what is with a provider."""
    id: int
    name: str
    dataset: int
    """Of the version."""
    version: int
    """The rows."""
    split: NotRequired[str]
    """Empty: all rows."""
    state: NotRequired[ExperimentOutputStateEnum]
    state_text: str
    """The state in words, with how many answers of a completed one failed."""
    reason: NotRequired[str]
    """Why it waits or was stopped."""
    repeats: NotRequired[int]
    judge_repeats: NotRequired[int]
    """How often a model judges each answer; the mean counts."""
    stops_dominated: NotRequired[bool]
    """An arm that another one beats at no higher cost is not asked on."""
    concurrency: NotRequired[int]
    """Trials at a time."""
    delivery: NotRequired[Delivery]
    """How models are asked.  * `now` - Now, at the full price * `batch` - Within a day, at half the price"""
    budget_usd: NotRequired[str | None]
    spent_usd: NotRequired[str]
    """Answers and judges, where known."""
    scorers: Any
    """List of kind and options; see scorers.registry."""
    corpus: NotRequired[str]
    """Fingerprint of the documents its arms search."""
    arms: list[ArmOutput]
    trial_total: int
    ended_total: int
    failed_total: int
    """Answers without a score."""
    created_at: str
    finished_at: NotRequired[str | None]
    batch: BatchRound | None
    """Batches at the provider at half price; null if none."""


@final
class ExperimentInputRequest(TypedDict):
    """An experiment to be started."""
    name: str
    version: int
    """Id of a dataset's version."""
    split: NotRequired[str]
    arms: list[ArmInputRequest]
    scorers: list[ScorerInputRequest]
    repeats: NotRequired[int]
    judge_repeats: NotRequired[int]
    """How often a model judges each answer; the mean counts."""
    stops_dominated: NotRequired[bool]
    """Stop an arm once another is shown to answer better at no higher cost."""
    same_documents: NotRequired[bool]
    """Arms search different collections, which must hold the same documents: what differs is how these are cut into
    passages."""
    concurrency: NotRequired[int]
    delivery: NotRequired[Delivery]
    """now, or batch for half the price within a day for each turn of a model.  * `now` - Now, at the full price *
    `batch` - Within a day, at half the price"""
    budget_usd: NotRequired[str | None]
    """Hard limit for answers and judges; null for none."""


@final
class ExperimentOutput(TypedDict):
    """An experiment with its counts."""
    id: int
    name: str
    dataset: int
    """Of the version."""
    version: int
    """The rows."""
    split: NotRequired[str]
    """Empty: all rows."""
    state: NotRequired[ExperimentOutputStateEnum]
    state_text: str
    """The state in words, with how many answers of a completed one failed."""
    reason: NotRequired[str]
    """Why it waits or was stopped."""
    repeats: NotRequired[int]
    judge_repeats: NotRequired[int]
    """How often a model judges each answer; the mean counts."""
    stops_dominated: NotRequired[bool]
    """An arm that another one beats at no higher cost is not asked on."""
    concurrency: NotRequired[int]
    """Trials at a time."""
    delivery: NotRequired[Delivery]
    """How models are asked.  * `now` - Now, at the full price * `batch` - Within a day, at half the price"""
    budget_usd: NotRequired[str | None]
    spent_usd: NotRequired[str]
    """Answers and judges, where known."""
    scorers: Any
    """List of kind and options; see scorers.registry."""
    corpus: NotRequired[str]
    """Fingerprint of the documents its arms search."""
    arms: list[ArmOutput]
    trial_total: int
    ended_total: int
    failed_total: int
    """Answers without a score."""
    created_at: str
    finished_at: NotRequired[str | None]

ExperimentOutputStateEnum: TypeAlias = "Literal['running', 'paused', 'stopped', 'completed']"


@final
class ExtensionShapeRequest(TypedDict):
    collections: NotRequired[Any]
    events: NotRequired[bool]
    """Stream the run's events too, under `groundwork`."""


@final
class FailingRowOutput(TypedDict):
    """A row that fails."""
    row: int
    trial: int
    """Id of its first answer."""
    question: str
    reason: str
    """What its lowest score says; empty where nothing does."""
    value: float
    """0 without an answer."""
    tags: list[str]
    """The row's own, with its type and difficulty."""
    own_tags: list[str]
    """Those that people gave its answers."""


@final
class FailureGroupOutput(TypedDict):
    """Failing rows that are alike, the most typical first."""
    number: int
    terms: list[str]
    rows: list[FailingRowOutput]


@final
class FailuresOutput(TypedDict):
    """The failures of an arm."""
    scored: int
    failing: int
    unanswered: int
    """Failing rows that have no answer and no score."""
    tags: list[TagFailuresOutput]
    rows: list[FailingRowOutput]
    """Of the page, the worst first, at most 200; with `tag` those that have it."""
    listed: int
    """Rows of all pages."""
    page: int
    pages: int
    state: FailuresOutputStateEnum
    """Of the groups; a POST to `failures/groups` has them made.  * `none` - none * `working` - working * `failed` -
    failed * `ready` - ready"""
    problem: str
    """Why no groups could be made; empty otherwise."""
    groups: list[FailureGroupOutput]
    """Of the page's rows, the largest first; none until they are ready, and none with `tag`."""
    alone: list[FailingRowOutput]
    """Rows that are like no other."""

FailuresOutputStateEnum: TypeAlias = "Literal['none', 'working', 'failed', 'ready']"


@final
class Feedback(TypedDict):
    id: int
    turn_id: int
    user: str
    verdict: str
    reason: str
    comment: str
    question: str
    answer: str
    model: str
    created_at: str
    updated_at: str

FeedbackInputReasonEnum: TypeAlias = "Literal['clear', 'complete', 'correct', 'incomplete', 'missed_source', 'not_asked', 'unclear', 'unsupported', 'well_sourced', 'wrong']"


@final
class FeedbackInputRequest(TypedDict):
    verdict: FeedbackInputVerdictEnum
    reason: NotRequired[FeedbackInputReasonEnum | BlankEnum]
    """good: correct, complete, well_sourced, clear; bad: wrong, unsupported, incomplete, missed_source, not_asked,
    unclear  * `clear` - clear * `complete` - complete * `correct` - correct * `incomplete` - incomplete *
    `missed_source` - missed_source * `not_asked` - not_asked * `unclear` - unclear * `unsupported` - unsupported *
    `well_sourced` - well_sourced * `wrong` - wrong"""
    comment: NotRequired[str]

FeedbackInputVerdictEnum: TypeAlias = "Literal['good', 'bad']"


@final
class File(TypedDict):
    path: str
    lines: list[str]
    start: int
    total_lines: int
    has_more: bool
    size: int
    """Bytes."""
    encoding: str
    newline: str
    language: str
    sha256: str
    is_binary: bool
    document_id: int | None
    changed_at: str


@final
class FileChange(TypedDict):
    id: int
    action: str
    note: str
    user_id: int | None
    run_id: int | None
    undoes_id: int | None
    is_undone: bool
    created_at: str
    revisions: list[FileRevision]


@final
class FileDiff(TypedDict):
    diff: str
    """A unified diff."""


@final
class FileEditInputRequest(TypedDict):
    path: str
    expected: NotRequired[str | None]
    """SHA-256 of the file as it was read; the change is refused (409) when it is another one by now."""
    edits: list[TextEditInputRequest]


@final
class FileListing(TypedDict):
    folder: str
    entries: list[ListedOutput]
    total: int
    offset: int
    has_more: bool


@final
class FileMatches(TypedDict):
    matches: list[MatchOutput]
    next_offset: int | None
    files_searched: int
    note: str


@final
class FileMoveInputRequest(TypedDict):
    note: NotRequired[str]
    path: str
    to: str


@final
class FileRevision(TypedDict):
    id: int
    path: str
    before: NotRequired[str | None]
    after: NotRequired[str | None]


@final
class FileRules(TypedDict):
    allow: NotRequired[list[str]]
    deny: NotRequired[list[str]]
    show_hidden: NotRequired[bool]
    read_only: NotRequired[bool]
    max_file_bytes: NotRequired[int]
    max_total_bytes: NotRequired[int]
    max_files: NotRequired[int]


@final
class FileRulesRequest(TypedDict):
    allow: NotRequired[list[str]]
    deny: NotRequired[list[str]]
    show_hidden: NotRequired[bool]
    read_only: NotRequired[bool]
    max_file_bytes: NotRequired[int]
    max_total_bytes: NotRequired[int]
    max_files: NotRequired[int]


@final
class FileWriteInputRequest(TypedDict):
    note: NotRequired[str]
    path: str
    content: str
    expected: NotRequired[str | None]
    """SHA-256 of the file as it was read; the change is refused (409) when it is another one by now."""
    encoding: NotRequired[str]
    """Such as utf-8 or latin-1; left out, a new file is UTF-8 and another keeps its own."""


@final
class FilesChanged(TypedDict):
    change: FileChange | None
    """None when the files were so already."""


@final
class FilesEditInputRequest(TypedDict):
    note: NotRequired[str]
    files: list[FileEditInputRequest]


@final
class Finding(TypedDict):
    code: str
    subject: str
    """What it is about."""
    detail: str
    """What is wrong with it."""
    is_repaired: bool
    advice: str
    """What to do about what cannot be repaired here."""


@final
class FindingOutput(TypedDict):
    """One score of a judge over the gold answers."""
    name: str
    n: int
    kappa: EstimateOutput | None
    """Quadratic kappa with the gold levels."""
    change: EstimateOutput | None
    """Of its mean level since the first check; null for the first one."""
    is_drifted: bool


@final
class FlakyRowOutput(TypedDict):
    """A row that passes in some repeats and fails in others."""
    row: int
    values: list[float]
    """Of each repeat."""
    passes: int
    spread: float
    judge_spread: float
    """How far judgements of one answer lay apart."""


@final
class FoundConversation(TypedDict):
    id: int
    title: str
    updated_at: str
    turn_id: int | None
    """Null where only the title fits."""
    author: str
    """user or assistant; empty where only the title fits."""
    excerpt: str
    """Plain text."""
    marks: list[list[int]]
    """Where in the excerpt the words are: [start, end) in characters."""

FoundEnum: TypeAlias = "Literal['exact', 'parent', 'near', 'none']"


@final
class FrontPointOutput(TypedDict):
    """An arm by quality and cost."""
    arm: int
    quality: float | None
    """Weighted mean of its scores; null without any."""
    cost_usd: float | None
    """Mean of an answer; null where no price is known."""
    is_on_front: bool
    """No arm answers better at no higher cost."""
    is_stopped: bool
    """It was stopped early: fewer rows."""


@final
class FunctionShapeRequest(TypedDict):
    name: str
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]


@final
class FunctionToolShapeRequest(TypedDict):
    name: str
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    type: TypeEnum


@final
class GateInputRequest(TypedDict):
    """What the gate holds the arm to."""
    baseline: NotRequired[str]
    tolerance: NotRequired[float]
    """Fall of a mean that is accepted."""
    minima: NotRequired[dict[str, float]]
    """Score to its least mean."""
    most_failed_rows: NotRequired[int | None]
    """Rows that may pass in the baseline and fail now."""
    must_pass: NotRequired[list[int]]
    """Rows (`row_ref`) that must pass whatever the means are."""
    bar: NotRequired[float]
    """Least lower end of a judge's kappa with people."""
    calibrated: NotRequired[bool]
    """Adjust judges' scores to people's grades, using the newest calibration."""


@final
class GateOutput(TypedDict):
    """What a gate decided."""
    code: int
    """0 passed, 1 failed, 3 not comparable."""
    reason: str
    checks: list[CheckOutput]
    failed_rows: list[int]
    baseline_arm: int | None
    baseline_name: str
    """Of the baseline's arm, with its experiment; empty without one."""
    arm: int | None
    arm_name: str


@final
class Generation(TypedDict):
    id: int
    dataset_id: int
    model: str
    settings: dict[str, Any]
    state: GenerationStateEnum
    reason: str
    """Why it is waiting or has ended."""
    wanted: int
    kept: int
    dropped: int
    failed: int
    estimate: dict[str, Any]
    """low, middle, high in USD; empty before a probe."""
    budget_usd: str | None
    spent_usd: str
    shortfall: list[dict[str, Any]]
    manifest: dict[str, Any]
    created_at: str
    finished_at: str | None


@final
class GenerationDetail(TypedDict):
    id: int
    dataset_id: int
    model: str
    settings: dict[str, Any]
    state: GenerationStateEnum
    reason: str
    """Why it is waiting or has ended."""
    wanted: int
    kept: int
    dropped: int
    failed: int
    estimate: dict[str, Any]
    """low, middle, high in USD; empty before a probe."""
    budget_usd: str | None
    spent_usd: str
    shortfall: list[dict[str, Any]]
    manifest: dict[str, Any]
    created_at: str
    finished_at: str | None
    batch: BatchRound | None
    """Batches at the provider at half price; null if none."""


@final
class GenerationResumeRequest(TypedDict):
    budget_usd: NotRequired[str | None]


@final
class GenerationStartRequest(TypedDict):
    model: NotRequired[str]
    """An id of the model list."""
    settings: dict[str, Any]
    """collections [ids], rows, types {type: share}, difficulty {level: share}, judge_model, language (a tag such as
    de), personas [texts], styles [texts], max_turns, script [texts], keep_at, repair_at, weights, minima,
    max_refines, max_repairs, rounds, max_steps, concurrency, drivers, seed, row_usd, service_tier (standard, flex,
    priority), cache_ttl, background, delivery (now, or batch for half the price within a day for each turn of a
    model)."""
    budget_usd: NotRequired[str | None]
    probe: NotRequired[int]
    """Pause with an estimate after this many finished items; 0: don't pause."""

GenerationStateEnum: TypeAlias = "Literal['queued', 'running', 'paused', 'stopped', 'completed', 'failed']"


@final
class GitBlame(TypedDict):
    path: str
    ref: str
    """The commit that the lines are of."""
    text: list[str]
    runs: list[dict[str, Any]]
    """line, lines, id, author, at, subject, and was: the file's path then, if it had another."""


@final
class GitCommit(TypedDict):
    commit: str
    branch: str
    paths: list[str]


@final
class GitCommitInputRequest(TypedDict):
    message: str
    paths: NotRequired[list[str]]
    """Only these files and folders; all that changed when left out."""
    branch: NotRequired[str]
    """A new branch for it."""
    repository: NotRequired[str]
    """Its folder, where the collection has several."""


@final
class GitDiff(TypedDict):
    files: list[dict[str, Any]]


@final
class GitLog(TypedDict):
    next: str | None
    """The next page; null at the end."""
    previous: str | None
    """Always null: pages are read forwards."""
    results: list[dict[str, Any]]


@final
class GitStatus(TypedDict):
    repository: str
    """Its folder in the collection."""
    branch: str
    """Empty when the head is a commit, not a branch."""
    commit: str | None
    """Null before the first one."""
    changed: list[dict[str, Any]]
    untracked: list[str]
    ignored: int
    """New files that .gitignore leaves out."""
    left_out: int
    """Files of the commit that were not imported."""

GradeInputDoEnum: TypeAlias = "Literal['grade', 'skip', 'gold']"


@final
class GradeInputRequest(TypedDict):
    """A decision about one answer."""
    do: GradeInputDoEnum
    """gold: makes one's own grades of it the right ones.  * `grade` - grade * `skip` - skip * `gold` - gold"""
    levels: NotRequired[dict[str, int]]
    """Criterion to level."""
    note: NotRequired[str]


@final
class GraderOutput(TypedDict):
    """One person's work."""
    name: str
    done: int
    skipped: int
    seconds: float | None
    """Median time of a grade."""
    gold_right: int
    """Levels of known answers that are right."""
    gold_total: int


@final
class GroupingInputRequest(TypedDict):
    """Which failing rows are grouped."""
    page: NotRequired[int]


@final
class GroupingOutput(TypedDict):
    """A job that makes groups."""
    arm: int
    job: int | None


@final
class HandOverInputRequest(TypedDict):
    to: int
    """Id of the member's person."""


@final
class Import(TypedDict):
    id: int
    collection_id: int
    source: DocumentSource
    name: str
    status: ImportStatus
    entries: dict[str, Any]
    """Counts: found, created, updated, unchanged, retried, skipped, problems, removed, unlisted."""
    error_code: str
    error_message: str
    created_at: str
    finished_at: str | None


@final
class ImportDetail(TypedDict):
    id: int
    collection_id: int
    source: DocumentSource
    name: str
    status: ImportStatus
    entries: dict[str, Any]
    """Counts: found, created, updated, unchanged, retried, skipped, problems, removed, unlisted."""
    error_code: str
    error_message: str
    created_at: str
    finished_at: str | None
    problems: list[ImportProblem]


@final
class ImportProblem(TypedDict):
    path: str
    reason: str
    """A stable code."""
    message: str
    count: int
    """Entries it stands for."""
    is_skip: bool
    """Left out by a rule, as expected."""


@final
class ImportStartRequest(TypedDict):
    source: ImportStartSourceEnum
    file: NotRequired[transport.File]
    """The archive (multipart only): documents, a packed repository or Chroma folder."""
    path: NotRequired[str]
    """Absolute path on the server, below a folder that the operator has opened."""
    urls: NotRequired[list[str]]
    into: NotRequired[str]
    """Folder of the collection for everything; without it the source's name, with “” the top."""
    ref: NotRequired[str]
    """Branch, tag or commit of a repository."""
    include: NotRequired[list[str]]
    """Patterns as in .gitignore; only files that match one are taken."""
    exclude: NotRequired[list[str]]
    with_hidden: NotRequired[bool]
    sync: NotRequired[bool]
    """Delete documents that an earlier import of the same source brought and that are gone from it."""
    chroma_collection: NotRequired[str]
    source_key: NotRequired[str]
    """Metadata field that names a chunk's source file."""
    vectors_model: NotRequired[str]
    """Take vectors over as this model's, which must be the collection's own; else chunks are embedded anew."""

ImportStartSourceEnum: TypeAlias = "Literal['archive', 'git', 'chroma', 'folder', 'url']"

ImportStatus: TypeAlias = "Literal['queued', 'running', 'completed', 'failed', 'cancelled']"


@final
class IngestionCheck(TypedDict):
    documents: int
    chunks: int
    findings: list[Finding]


@final
class JudgeCheckOutput(TypedDict):
    """A judge on the gold answers of its rubric."""
    author: str
    rubric_version: int
    is_drifted: bool
    findings: list[FindingOutput]
    at: str

KindEnum: TypeAlias = "Literal['user', 'api_key']"

LanguageEnum: TypeAlias = "Literal['simple', 'arabic', 'czech', 'danish', 'dutch', 'english', 'finnish', 'french', 'german', 'greek', 'hindi', 'hungarian', 'indonesian', 'italian', 'norwegian', 'persian', 'polish', 'portuguese', 'romanian', 'russian', 'spanish', 'swedish', 'turkish']"

LastOutcomeEnum: TypeAlias = "Literal['passed', 'failed']"


@final
class Ledger(TypedDict):
    pages: int
    skipped: int
    chunks: int
    vectors: int
    lexical: int
    agrees: bool
    """Whether the document's counts are what the tables hold."""

LegsEnum: TypeAlias = "Literal['vector', 'lexical', 'exact']"


@final
class LinkCount(TypedDict):
    relation: str
    made_by: str
    count: int

LinksByEnum: TypeAlias = "Literal['rule', 'model']"


@final
class ListedOutput(TypedDict):
    name: str
    path: str
    is_folder: bool
    size: int
    """Bytes; of a folder, of all files below it."""
    files: int
    language: str
    changed_at: str
    document_id: int | None
    is_restricted: bool


@final
class LoggedCall(TypedDict):
    """A call as ``runs.call_log.call_facts`` tells it."""
    id: int
    run: int
    user: int | None
    user_name: str
    """Empty for a former member."""
    path: CallPath | BlankEnum
    """How the call was made.  * `chat` - Chat * `job` - Job * `code` - code (a tool or program made it) * `rest` -
    REST * `mcp` - MCP"""
    step: int
    """The run's model turn that made it."""
    call_id: str
    parent_call_id: str
    """Of the tool or program that made the call; empty for the model."""
    tool: str
    tool_version: str
    arguments: Any
    """Secrets are masked."""
    decision: CallDecision | BlankEnum
    """Of the policy; empty where it not applied.  * `allow` - allowed * `ask` - asked (somebody approves each call)
    * `deny` - denied"""
    rule: int | None
    """Id of the grant that decided."""
    decision_why: str
    status: ToolCallStatus
    error_code: str
    attempts: int
    result_size: int | None
    """Characters of the whole output."""
    cost_usd: str | None
    """Its share of the model turn that made it."""
    started_at: str
    finished_at: str | None
    duration_ms: int | None


@final
class LoggedCallDetail(TypedDict):
    """A call as ``runs.call_log.call_facts`` tells it."""
    id: int
    run: int
    user: int | None
    user_name: str
    """Empty for a former member."""
    path: CallPath | BlankEnum
    """How the call was made.  * `chat` - Chat * `job` - Job * `code` - code (a tool or program made it) * `rest` -
    REST * `mcp` - MCP"""
    step: int
    """The run's model turn that made it."""
    call_id: str
    parent_call_id: str
    """Of the tool or program that made the call; empty for the model."""
    tool: str
    tool_version: str
    arguments: Any
    """Secrets are masked."""
    decision: CallDecision | BlankEnum
    """Of the policy; empty where it not applied.  * `allow` - allowed * `ask` - asked (somebody approves each call)
    * `deny` - denied"""
    rule: int | None
    """Id of the grant that decided."""
    decision_why: str
    status: ToolCallStatus
    error_code: str
    attempts: int
    result_size: int | None
    """Characters of the whole output."""
    cost_usd: str | None
    """Its share of the model turn that made it."""
    started_at: str
    finished_at: str | None
    duration_ms: int | None
    result: str
    """Its first 4000 characters."""


@final
class Mark(TypedDict):
    """A sentence of an answer that its reader should check."""
    start: int
    """First character in the answer."""
    end: int
    """The character after its last one."""
    reason: MarkReasonEnum
    """unsupported, number, name and polarity: it was compared with its sources and did not pass; language: it was
    not compared, as its source is in another language.  * `unsupported` - unsupported * `number` - number * `name`
    - name * `polarity` - polarity * `language` - language"""
    text: str
    """The sentence."""
    note: str
    """The reason in words."""

MarkReasonEnum: TypeAlias = "Literal['unsupported', 'number', 'name', 'polarity', 'language']"


@final
class MatchOutput(TypedDict):
    path: str
    line: int
    column: int
    text: str


@final
class Me(TypedDict):
    kind: KindEnum
    tenant: Tenant
    user: Person | None
    """The person, or the one a key acts for; null for a key of nobody."""
    role: Role | NullEnum | None
    """Null for a key.  * `owner` - Owner * `admin` - Admin * `member` - Member * `viewer` - Viewer"""
    actions: list[str]
    """Everything the caller may do."""


@final
class Member(TypedDict):
    id: int
    """Of the membership."""
    user_id: int
    """Of the person: what other operations name them by."""
    email: str
    name: str
    role: Role
    created_at: str

ModeEnum: TypeAlias = "Literal['tools', 'quick', 'planned', 'code']"


@final
class Model(TypedDict):
    """A model: the fields that OpenAI's clients read, and the facts we know."""
    id: str
    """What a request names it by."""
    object: str
    created: int
    """Always 0: not known."""
    owned_by: str
    provider: str
    model: str
    label: str
    context_window: int | None
    """Tokens."""
    max_output_tokens: int | None
    is_language_model: bool
    """False: answers quote, nothing is written."""
    endpoint: str
    """Named compatible server, empty for the default."""
    capabilities: list[str]
    prompt_cache: str
    """automatic, marked or none."""
    prices: list[PriceTier]
    """By prompt size; empty when unknown."""
    deprecated_on: str
    """Date of the announced end, empty for none."""
    replaced_by: str
    """Its successor, empty when unknown."""


@final
class Models(TypedDict):
    object: ModelsObjectEnum
    data: list[Model]

ModelsObjectEnum: TypeAlias = "Literal['list']"


@final
class NeedOutput(TypedDict):
    """How many rows show a change with 80 % power."""
    change: float
    rows: int

NullEnum: TypeAlias = "Literal[None]"


@final
class OutgoingHosts(TypedDict):
    hosts: list[str]
    """Hosts such as api.example.com, or *.example.com for all below one. Empty: every public host."""


@final
class OutgoingHostsRequest(TypedDict):
    hosts: list[str]
    """Hosts such as api.example.com, or *.example.com for all below one. Empty: every public host."""

OutputEnum: TypeAlias = "Literal['text', 'structured', 'schema']"


@final
class PaginatedAgreementOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[AgreementOutput]


@final
class PaginatedAssistantList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Assistant]


@final
class PaginatedAssistantVersionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[AssistantVersion]


@final
class PaginatedAttachmentList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Attachment]


@final
class PaginatedBudgetList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[Budget]


@final
class PaginatedCalibrationOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[CalibrationOutput]


@final
class PaginatedChainStepList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[ChainStep]


@final
class PaginatedChunkLinkList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[ChunkLink]


@final
class PaginatedChunkList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Chunk]


@final
class PaginatedChunkReadList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ChunkRead]


@final
class PaginatedChunkRevisionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ChunkRevision]


@final
class PaginatedCollectionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Collection]


@final
class PaginatedContractTestList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ContractTest]


@final
class PaginatedConversationList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Conversation]


@final
class PaginatedDatasetCheckList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[DatasetCheck]


@final
class PaginatedDatasetExportList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[DatasetExport]


@final
class PaginatedDatasetImportList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[DatasetImport]


@final
class PaginatedDatasetList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Dataset]


@final
class PaginatedDatasetRowList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[DatasetRow]


@final
class PaginatedDatasetVersionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[DatasetVersion]


@final
class PaginatedDecisionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Decision]


@final
class PaginatedDocumentList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Document]


@final
class PaginatedExperimentOutputList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ExperimentOutput]


@final
class PaginatedFeedbackList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Feedback]


@final
class PaginatedFileChangeList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[FileChange]


@final
class PaginatedFoundConversationList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[FoundConversation]


@final
class PaginatedFrontPointOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[FrontPointOutput]


@final
class PaginatedGenerationList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Generation]


@final
class PaginatedImportList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Import]


@final
class PaginatedJudgeCheckOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[JudgeCheckOutput]


@final
class PaginatedLoggedCallList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[LoggedCall]


@final
class PaginatedMemberList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Member]


@final
class PaginatedQueueOutputList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[QueueOutput]


@final
class PaginatedQueuedQuestionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[QueuedQuestion]


@final
class PaginatedRubricOutputList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[RubricOutput]


@final
class PaginatedSamplingRuleOutputList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[SamplingRuleOutput]


@final
class PaginatedSearchCaseList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[SearchCase]


@final
class PaginatedShareList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Share]


@final
class PaginatedSnapshotList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Snapshot]


@final
class PaginatedSpaceSwapList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[SpaceSwap]


@final
class PaginatedTagUseOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[TagUseOutput]


@final
class PaginatedToolCredentialList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[ToolCredential]


@final
class PaginatedToolEntryList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ToolEntry]


@final
class PaginatedToolGrantList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ToolGrant]


@final
class PaginatedToolLimitList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[ToolLimit]


@final
class PaginatedToolSourceList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ToolSource]


@final
class PaginatedToolSuggestionList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[ToolSuggestion]


@final
class PaginatedToolVersionList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[ToolVersion]


@final
class PaginatedToolkitList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Toolkit]


@final
class PaginatedTrendOutputList(TypedDict):
    next: str | None
    """Always null: this page has everything."""
    previous: str | None
    """Always null: this page has everything."""
    results: list[TrendOutput]


@final
class PaginatedTrialOutputList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[TrialOutput]


@final
class PaginatedTurnList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Turn]


@final
class PaginatedWebhookDeliveryList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[WebhookDelivery]


@final
class PaginatedWebhookList(TypedDict):
    next: NotRequired[str | None]
    previous: NotRequired[str | None]
    results: list[Webhook]


@final
class PairOutput(TypedDict):
    """Two arms by all their rows."""
    a: int
    b: int
    a_wins: int
    b_wins: int
    ties: int
    """Verdicts that followed the order are among them."""
    flips: int
    """Verdicts that followed the order of the answers."""
    unscored: int
    controlled: float | None
    """How often B would win if both answers were equally long."""


@final
class PairSummaryOutput(TypedDict):
    """The pairwise verdicts of an experiment."""
    pairs: list[PairOutput]
    strengths: list[StrengthOutput]
    """The strongest first."""
    verdicts: int
    flips: int
    flip_rate: float
    authors: list[str]
    problem: str
    """Why there are no strengths; empty when there are."""


@final
class PassageOutput(TypedDict):
    """A passage that was found."""
    document: str
    text: str


@final
class PatchedAssistantUpdateRequest(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    is_archived: NotRequired[bool]


@final
class PatchedChunkChangeRequest(TypedDict):
    text: NotRequired[str]
    """Another text."""
    is_disabled: NotRequired[bool]
    """True leaves it out of every search."""
    note: NotRequired[str]
    """Why."""


@final
class PatchedCollectionInputRequest(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    chunk_size: NotRequired[int]
    """Characters per chunk, at most; 1200 if not given."""
    chunk_overlap: NotRequired[int]
    """Less than half of chunk_size; 200 if not given."""
    language: NotRequired[LanguageEnum]
    """How words are reduced to stems; a change reads every document again.  * `simple` - simple * `arabic` - arabic
    * `czech` - czech * `danish` - danish * `dutch` - dutch * `english` - english * `finnish` - finnish * `french` -
    french * `german` - german * `greek` - greek * `hindi` - hindi * `hungarian` - hungarian * `indonesian` -
    indonesian * `italian` - italian * `norwegian` - norwegian * `persian` - persian * `polish` - polish *
    `portuguese` - portuguese * `romanian` - romanian * `russian` - russian * `spanish` - spanish * `swedish` -
    swedish * `turkish` - turkish"""
    links_by: NotRequired[LinksByEnum]
    """Who writes key points and links.  * `rule` - Rules * `model` - A model"""
    links_model: NotRequired[str]
    """The model, where links_by is `model`."""
    reranker: NotRequired[RerankerEnum]
    """What reads the best passages of a search once more and orders them anew.  * `default` - The server's, if it
    has one * `none` - None * `cross-encoder` - A cross-encoder on the server * `model` - A language model"""
    reranker_model: NotRequired[str]
    """The model, where reranker is `model`."""
    keep_versions: NotRequired[int]
    """Earlier versions kept of each document; 10 if not given."""


@final
class PatchedConversationUpdateRequest(TypedDict):
    title: NotRequired[str]
    collections: NotRequired[list[int]]
    """Ids of the collections to search from now on; empty for all."""


@final
class PatchedDatasetRowUpdateRequest(TypedDict):
    question: NotRequired[str]
    answer: NotRequired[str]
    rationale: NotRequired[str]
    type: NotRequired[QuestionType]
    difficulty: NotRequired[DifficultyEnum]
    expected: NotRequired[ExpectedEnum]
    split: NotRequired[SplitEnum]
    language: NotRequired[str]
    tags: NotRequired[list[str]]


@final
class PatchedDatasetSourceLicenseRequest(TypedDict):
    document: NotRequired[str]
    """Its name among the sources."""
    license: NotRequired[str]
    """SPDX name or free text; empty: unknown."""


@final
class PatchedDatasetUpdateRequest(TypedDict):
    name: NotRequired[str]
    description: NotRequired[str]
    needs_two_people: NotRequired[bool]


@final
class PatchedDocumentDescribeRequest(TypedDict):
    document_type: NotRequired[str]
    """Empty gives it back to the rules."""
    tags: NotRequired[list[str]]
    dated: NotRequired[str | None]
    attributes: NotRequired[dict[str, Any]]
    """The team's own metadata, whole."""


@final
class PatchedQueuedUpdateRequest(TypedDict):
    text: NotRequired[str]
    """The question."""


@final
class PatchedToolEntryChangeRequest(TypedDict):
    title: NotRequired[str]
    description: NotRequired[str]
    """What a model reads in place of the tool's own."""
    category: NotRequired[str]
    tags: NotRequired[list[str]]
    is_enabled: NotRequired[bool]
    cost_hint: NotRequired[str]
    timeout_s: NotRequired[float | None]
    """Seconds."""


@final
class PatchedToolSourceUpdateRequest(TypedDict):
    title: NotRequired[str]
    url: NotRequired[str]
    """Where calls go; an OpenAPI document may say it."""
    document_url: NotRequired[str]
    """Where the OpenAPI document is re-read from."""
    document: NotRequired[str]
    """The OpenAPI document itself."""
    settings: NotRequired[dict[str, Any]]
    """What the kind needs; nothing secret."""
    allowed_hosts: NotRequired[list[str]]
    """Further hosts that calls may go to."""
    is_enabled: NotRequired[bool]


@final
class PatchedWebhookUpdateRequest(TypedDict):
    url: NotRequired[str]
    """http(s), on a public host."""
    events: NotRequired[list[EventsEnum]]
    description: NotRequired[str]
    is_enabled: NotRequired[bool]


@final
class PeopleOutput(TypedDict):
    """How far people agree with each other."""
    n: int
    """Answers that two or more have graded."""
    alpha: EstimateOutput | None
    """Krippendorff's, ordinal."""
    cohen: float | None
    """Mean quadratic kappa of pairs."""
    fleiss: float | None
    percent: float | None

PeriodEnum: TypeAlias = "Literal['day', 'month', 'total']"


@final
class Person(TypedDict):
    id: int
    email: str
    name: str
    """Full name; may be empty."""


@final
class PriceTier(TypedDict):
    """USD per million tokens for prompts above a size."""
    input: float
    output: float
    cached_read: float | None
    cache_write: float | None
    above_tokens: int


@final
class ProgressOutput(TypedDict):
    """How far a queue is."""
    items: int
    complete: int
    waiting: int
    """Answers that are not there yet."""
    grades: int
    wanted: int
    graders: list[GraderOutput]


@final
class ProjectStructure(TypedDict):
    name: str
    size: int
    files: int
    languages: dict[str, int]
    children: list[dict[str, Any]]


@final
class PublishInputRequest(TypedDict):
    version: int
    """Its number."""

QuestionType: TypeAlias = "Literal['factual', 'multi_hop', 'comparison', 'how_to', 'code', 'unanswerable', 'adversarial', 'injected', 'contradictory', 'multi_turn']"


@final
class QueueInputRequest(TypedDict):
    """A queue of answers to grade."""
    name: str
    rubric_version: int
    experiment: NotRequired[int | None]
    """Its answers; or name a version."""
    version: NotRequired[int | None]
    """Of a dataset: the answers that stand in its rows."""
    reviews: NotRequired[int]
    """People per answer."""
    most: NotRequired[int]
    disputed_first: NotRequired[bool]
    """By how far judges disagree, times how many live answers of 90 days cite the row's documents."""
    assignees: NotRequired[list[int]]
    """Ids of the members who grade; none: all who may."""
    instructions: NotRequired[str]
    judge: NotRequired[str]
    """Of a version's answers: a model, or `lexical`."""


@final
class QueueOutput(TypedDict):
    """A queue with its totals."""
    id: int
    name: str
    experiment: NotRequired[int | None]
    rubric_version: int
    """What is asked."""
    reviews: NotRequired[int]
    """People per answer."""
    assignees: NotRequired[Any]
    """Ids of the people who grade; none: all who may."""
    instructions: NotRequired[str]
    """What they read beside the rubric."""
    item_total: int
    grade_total: int
    created_at: str
    closed_at: NotRequired[str | None]

QueueStateInputDoEnum: TypeAlias = "Literal['close', 'reopen']"


@final
class QueueStateInputRequest(TypedDict):
    """What becomes of a queue."""
    do: QueueStateInputDoEnum


@final
class QueuedQuestion(TypedDict):
    id: int
    text: str
    model: str
    """Empty: the conversation's."""
    client_id: str
    problem: str
    """Why it was not asked when its time came; empty: it waits."""
    created_at: str


@final
class RateOutput(TypedDict):
    """How many of some answers did what they should not."""
    hits: int
    count: int
    share: EstimateOutput | None
    """With Wilson's 95 % interval; null without answers."""


@final
class Reader(TypedDict):
    cursor: str
    """Give it back with the next step."""
    chunk: Chunk | None
    """Null when there is none in that direction."""
    place: int
    """How many chunks lie before it."""
    total: int


@final
class ReadingOutput(TypedDict):
    """A score of an arm on the scale of people."""
    calibration: int
    number: int
    """The calibration's version."""
    n: int
    """Answers that it rests on."""
    raw: float
    """Mean of what the judge gave."""
    value: float
    """The same, calibrated."""
    low: float
    """Lower end of its 95 % interval, as far as the calibration is known."""
    high: float


@final
class RepeatsOutput(TypedDict):
    """An arm by its repeats."""
    score: str
    names: list[str]
    rows: int
    """Scored in every repeat."""
    repeats: int
    means: list[float]
    """Of each repeat."""
    deviation: float | None
    """Standard deviation of the means."""
    variance: VarianceOutput
    pass_all: float | None
    """Share of rows that pass in every repeat (pass^k)."""
    flaky_count: int
    flaky: list[FlakyRowOutput]
    """The widest spread first, at most 100."""


@final
class Replay(TypedDict):
    """A replay beside its record."""
    is_equal: bool
    diverged_at: int | None
    """Place of the first row that differs."""
    missing: list[str]
    """Tools that are no longer available."""
    rows: list[ReplayRow]


@final
class ReplayInputRequest(TypedDict):
    """How to replay a run."""
    ask_model: NotRequired[bool]
    """Ask the run's model again; this is billed like any request."""


@final
class ReplayRow(TypedDict):
    """One thing, as it was recorded and as it would be now."""
    step: int
    kind: str
    """Of a run: says, calls, result, ends. Of a call: tool, arguments, policy."""
    recorded: str
    replayed: str
    is_equal: bool

RerankerEnum: TypeAlias = "Literal['default', 'none', 'cross-encoder', 'model']"


@final
class Response(TypedDict):
    """As OpenAI documents it; ``groundwork`` holds the run, its state, citations, and calls that wait for
    approval."""
    id: str
    object: str
    """Always `response`."""
    created_at: int
    status: str
    """completed, failed, in_progress, cancelled or incomplete."""
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None
    previous_response_id: str | None
    groundwork: dict[str, Any]


@final
class ResponseDeletedOutput(TypedDict):
    id: str
    object: str
    """Always `response`."""
    deleted: bool
    """Always true."""


@final
class ResponseInputsOutput(TypedDict):
    """As OpenAI documents it."""
    object: str
    """Always `list`."""
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


@final
class ResponseShapeRequest(TypedDict):
    """Settings of the model that both APIs have."""
    service_tier: NotRequired[ServiceTierEnum | NullEnum | None]
    """The provider's tier: flex costs about half and is slow, priority (also called fast) is quick and costs more.
    The answer says which was used. Refused where the model does not have it.  * `auto` - auto * `default` - default
    * `flex` - flex * `priority` - priority * `fast` - fast"""
    temperature: NotRequired[float | None]
    top_p: NotRequired[float | None]
    parallel_tool_calls: NotRequired[bool | None]
    """False: the model calls one tool at a time, where its provider can be told so."""
    model: str
    input: str | list[dict[str, Any]]
    instructions: NotRequired[str | None]
    previous_response_id: NotRequired[str | None]
    stream: NotRequired[bool | None]
    """Answer with server-sent events, as OpenAI does."""
    store: NotRequired[bool | None]
    """False: no later request can name this response. The run is kept as every run is."""
    tools: NotRequired[list[FunctionToolShapeRequest] | None]
    tool_choice: NotRequired[Any]
    text: NotRequired[dict[str, Any] | None]
    max_output_tokens: NotRequired[int | None]
    top_logprobs: NotRequired[Any]
    reasoning: NotRequired[dict[str, Any] | None]
    metadata: NotRequired[dict[str, str] | None]
    background: NotRequired[Any]
    conversation: NotRequired[Any]
    prompt: NotRequired[Any]
    groundwork: NotRequired[ExtensionShapeRequest | None]


@final
class RestoreInputRequest(TypedDict):
    revision: int


@final
class Retention(TypedDict):
    days: int | None
    """The workspace's own rule; null where the default holds."""
    default_days: int
    """The server's; 0 keeps it for ever."""


@final
class RetentionChangeRequest(TypedDict):
    days: int | None
    """0 keeps it for ever; null goes back to the server's default."""


@final
class RetryInputRequest(TypedDict):
    model: NotRequired[str]

Role: TypeAlias = "Literal['owner', 'admin', 'member', 'viewer']"


@final
class RowChangeOutput(TypedDict):
    """One row in both arms."""
    row: int
    a: float
    b: float
    change: float


@final
class RubricInputRequest(TypedDict):
    """A rubric to be made."""
    name: str
    slug: NotRequired[str]
    criteria: list[CriterionShapeRequest]


@final
class RubricOutput(TypedDict):
    """A rubric with its versions."""
    id: int
    slug: str
    """Those of the built-in judges of claims have a dot."""
    name: str
    versions: list[RubricVersionOutput]
    created_at: str


@final
class RubricVersionInputRequest(TypedDict):
    """The next version of a rubric."""
    criteria: list[CriterionShapeRequest]
    note: NotRequired[str]


@final
class RubricVersionOutput(TypedDict):
    """A version of a rubric."""
    id: int
    rubric: int
    number: int
    note: NotRequired[str]
    criteria: list[CriterionShape]
    created_at: str


@final
class RulesPreview(TypedDict):
    days: int
    """The rule that was tried; 0 for ever."""
    count: int
    """Conversations that it would delete now."""
    users: int
    """Of how many people."""
    oldest_at: str | None
    """Last question in the oldest of them."""


@final
class Run(TypedDict):
    id: int
    kind: str
    model: str
    status: RunStatus
    answer: str
    """As the model wrote it, with markers such as [c123]."""
    text: str
    """The finished answer as people read it: Markdown with markers [1]; empty until then."""
    marks: list[Mark]
    """Sentences of `text` to check, in its order."""
    last_seq: int
    """Number of the newest event."""
    limit_reached: str
    error_code: str
    error_message: str
    is_retryable: bool
    usage: dict[str, int]
    cost_usd: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None

RunStatus: TypeAlias = "Literal['queued', 'running', 'parked', 'completed', 'stopped', 'failed']"


@final
class SafetyGroupOutput(TypedDict):
    """Attacks by one of their facts."""
    key: str
    """carrier, category, disguise or place."""
    lines: list[SafetyLineOutput]


@final
class SafetyLineOutput(TypedDict):
    """One kind of attack."""
    key: str
    title: str
    rates: list[RateOutput]
    """Attack success of each arm, in their order."""


@final
class SafetyOutput(TypedDict):
    """The safety of an experiment's arms."""
    arms: list[ArmSafetyOutput]
    groups: list[SafetyGroupOutput]
    succeeded: list[AttackSuccessOutput]
    """In the order of the rows, at most 100."""
    succeeded_count: int


@final
class SaidOutput(TypedDict):
    """What one side said before the question."""
    role: SaidOutputRoleEnum
    text: str

SaidOutputRoleEnum: TypeAlias = "Literal['user', 'assistant']"


@final
class SamplingRuleInputRequest(TypedDict):
    """Which live answers are scored."""
    name: str
    rate: float
    """Share of the answers."""
    takes_doubtful: NotRequired[bool]
    """Every answer without a source, or with an unsupported sentence, too."""
    assistant: NotRequired[int | None]
    """Only its answers; null for all."""
    scorers: list[ScorerInputRequest]
    budget_usd: str
    """For judges, a calendar month (UTC)."""


@final
class SamplingRuleOutput(TypedDict):
    """A rule."""
    id: int
    name: str
    is_active: NotRequired[bool]
    rate: float
    """Share of answers that are scored, 0 to 1."""
    takes_doubtful: NotRequired[bool]
    """Every answer without a source, or with an unsupported sentence."""
    assistant: NotRequired[int | None]
    """Empty: every answer."""
    scorers: Any
    """As of an experiment; none that needs a reference."""
    budget_usd: str
    """A month."""
    created_at: str

SamplingStateInputDoEnum: TypeAlias = "Literal['pause', 'resume']"


@final
class SamplingStateInputRequest(TypedDict):
    """What becomes of a rule."""
    do: SamplingStateInputDoEnum


@final
class ScoreOutput(TypedDict):
    """A score; a value of null is "unscored", and the reason says why."""
    name: str
    value: NotRequired[float | None]
    """0 to 1; empty: unscored."""
    level: NotRequired[float | None]
    """On the scale it was judged by, 1 to 5."""
    reason: NotRequired[str]
    evidence: NotRequired[str]
    details: NotRequired[Any]
    author_kind: AuthorKindEnum
    author: str
    """Scorer with its version, or person with their number."""


@final
class ScorerInputRequest(TypedDict):
    """A scorer with its options."""
    kind: str
    """rubric, faithfulness, exact, token_f1, rouge_l, numeric, codes, regex, json_schema, retrieval, citations,
    tool_calls, forbidden_tools, attack or pairwise."""
    options: NotRequired[dict[str, Any]]
    """Of judges: models (several are a jury; `lexical` counts words), and of rubric: rubric, number."""


@final
class SearchCandidate(TypedDict):
    chunk_id: int
    document_id: int
    document_name: str
    fused_rank: int
    score: float
    vector_rank: int | None
    lexical_rank: int | None
    exact_rank: int | None
    distance: float | None
    bm25: float | None
    rerank_rank: int | None
    outcome: str
    """`returned`, or why it was dropped."""


@final
class SearchCase(TypedDict):
    id: int
    collection_id: int
    query: str
    filters: dict[str, Any]
    k: int
    expected: list[Span]
    """Places in documents; those you may not see are left out."""
    note: str
    created_at: str


@final
class SearchCaseInputRequest(TypedDict):
    query: str
    chunks: NotRequired[list[int]]
    """Ids of the passages that should answer it."""
    filters: NotRequired[dict[str, Any]]
    k: NotRequired[int]
    note: NotRequired[str]


@final
class SearchCode(TypedDict):
    code: str
    """As it is written in the question."""
    canonical: str
    """Its kind and one form, such as `hts:8481803055`."""
    found: FoundEnum
    """`exact`: passages hold it. `near`: only longer codes under it are there. `parent`: only a shorter code above
    it is. `none`: nothing of it is.  * `exact` - exact * `parent` - parent * `near` - near * `none` - none"""
    others: list[str]
    """The longer codes, or the shorter one, as the passages write them."""


@final
class SearchHidden(TypedDict):
    not_ready: int
    not_live: int
    not_permitted: int
    """Told to those who may write documents."""
    filtered: int
    chunks_disabled: int


@final
class SearchHit(TypedDict):
    chunk_id: int
    collection_id: int
    document_id: int
    document_name: str
    media_type: str
    index: int
    kind: str
    """doc, table, function, class or file."""
    source_index: int | None
    """The chunk_index that an imported chunk had in its source."""
    text: str
    page_start: int | None
    page_end: int | None
    headings: list[str]
    score: float
    """Fused score; only its order means something."""
    vector_rank: int | None
    lexical_rank: int | None
    exact_rank: int | None
    distance: float | None
    """Cosine distance."""
    bm25: float | None
    before: list[str]
    """Texts of the chunks before it, as asked for with expand."""
    after: list[str]


@final
class SearchRequest(TypedDict):
    query: str
    collections: NotRequired[list[int]]
    """Ids of collections; without it, all of the workspace."""
    k: NotRequired[int]
    filters: NotRequired[dict[str, Any]]
    """`{"media_type": "application/pdf"}` or `{"document_id": {"in": [1, 2]}}`. Fields: document_id, name, path,
    media_type, document_type, source, tags, dated, added, kind, headings, page, source_index, qualified_name,
    attributes.<name>. Operators: eq, ne, in, nin, all, lt, lte, gt, gte, prefix, contains, exists. An unknown one
    is an error."""
    legs: NotRequired[list[LegsEnum]]
    """Ways to search; without it, all."""
    as_of: NotRequired[str | None]
    """Search the versions that were live then."""
    snapshot: NotRequired[int]
    """Id of a named moment to search as of, in place of as_of."""
    expand: NotRequired[int]
    """Neighbours to give with each passage, on either side."""
    trace: NotRequired[bool]
    """Tell how the search came to its result."""


@final
class SearchResult(TypedDict):
    query: str
    hits: list[SearchHit]
    identifiers: list[str]
    """Exact codes and names found in the question."""
    codes: list[SearchCode]
    """What became of each code in the question."""
    behind: int
    """Documents whose codes are still being indexed: some spellings may miss them."""
    legs: list[str]
    """Ways that were searched."""
    note: str
    """What a reader should know of the search: a way that could not be searched, a wish for the newest that was
    heard."""
    embed_ms: float
    database_ms: float
    as_of: str | None
    trace: SearchTrace | None


@final
class SearchTrace(TypedDict):
    query: str
    searched: str
    terms: list[str]
    identifiers: list[str]
    legs: dict[str, dict[str, Any]]
    candidates: list[SearchCandidate]
    hidden: SearchHidden | None
    """Documents passed over before ranking."""
    timings_ms: dict[str, float]
    reranker: str | None
    """What ordered the best passages anew; null where nothing did."""

ServiceTierEnum: TypeAlias = "Literal['auto', 'default', 'flex', 'priority', 'fast']"


@final
class Share(TypedDict):
    id: int
    key: str
    """Read it at /shares/{key}."""
    title: str
    created_at: str
    readers: list[dict[str, Any]]
    """Who has opened it."""


@final
class ShareMade(TypedDict):
    id: int
    key: str
    """Read it at /shares/{key}."""
    title: str
    created_at: str
    readers: list[dict[str, Any]]
    """Who has opened it."""
    limited_sources: list[str]
    """Names of the documents it rests on that not everybody here may read; readers who may not see nothing of
    these."""


@final
class SharedCitation(TypedDict):
    number: int
    document_name: str
    """Says so, where you may not see the source."""
    collection_name: str
    page: int | None
    quote: str
    """Empty where you may not see the source."""
    header: str
    """The column header of the table that the quote is a row of; else empty."""


@final
class SharedConversation(TypedDict):
    title: str
    by: str
    created_at: str
    turns: list[SharedTurn]


@final
class SharedTurn(TypedDict):
    question: str
    answer: str
    """Markdown with markers [1]."""
    model: str
    asked_at: str
    marks: list[Mark]
    """Sentences to check, in the order of the answer."""
    compared: str
    """What the sentences were compared with; empty where it is not kept."""
    citations: list[SharedCitation]
    hidden_citations: int


@final
class SheetOutput(TypedDict):
    """One answer to grade, blind: neither model nor judge nor other grades."""
    assignment: int
    conversation: list[SaidOutput]
    """What was said before the question."""
    question: str
    reference: str
    sources: list[str]
    """Return the quotes of the row's sources."""
    answer: str
    passages: list[PassageOutput]
    """That were found, best first, where one must read them to grade."""
    criteria: list[dict[str, Any]]
    """Return what is graded."""
    left: int


@final
class Snapshot(TypedDict):
    id: int
    collection_id: int
    name: str
    at: str


@final
class SnapshotInputRequest(TypedDict):
    name: str
    at: NotRequired[str]
    """The moment; now if not given."""


@final
class SpaceSwap(TypedDict):
    id: int
    collection_id: int
    from_space: str
    to_space: str
    status: str
    done: int
    """Chunks with a vector in the new space."""
    total: int
    comparison: dict[str, Any]
    """How far the results of both spaces agree."""
    error_message: str
    created_at: str
    switched_at: str | None


@final
class SpaceSwapInputRequest(TypedDict):
    embedder: str
    """`provider/model`, with `@dimensions` where a model has several."""


@final
class SpaceSwapStepRequest(TypedDict):
    step: StepEnum


@final
class Span(TypedDict):
    path: str
    char_start: int
    char_end: int

SplitEnum: TypeAlias = "Literal['train', 'validation', 'test']"

StageEnum: TypeAlias = "Literal['fetch', 'parse', 'chunk', 'summarise', 'embed', 'index']"

StateInputDoEnum: TypeAlias = "Literal['pause', 'resume', 'stop']"


@final
class StateInputRequest(TypedDict):
    """What becomes of an experiment."""
    do: StateInputDoEnum

StepEnum: TypeAlias = "Literal['switch', 'undo', 'drop', 'cancel', 'retry']"


@final
class StrengthOutput(TypedDict):
    """An arm's place among all."""
    arm: int
    wins: float
    """A tie is half a win."""
    games: int
    chance: EstimateOutput | None
    """To beat an arm of mean strength (Bradley-Terry); null where none is finite."""

SubjectKindEnum: TypeAlias = "Literal['everyone', 'role', 'member', 'api_key']"


@final
class SuiteInputRequest(TypedDict):
    """A safety suite to be made."""
    name: str
    collections: NotRequired[list[int]]
    """Their texts carry the attacks; neither these nor a version: short texts of our own."""
    version: NotRequired[int | None]
    """Id of a dataset's version whose rows carry the attacks with their own questions."""
    carriers: NotRequired[list[str]]
    """Of: passage, table, code, heading, file, tool_result, email, history."""
    categories: NotRequired[list[str]]
    """What attackers want, of: task, dissemination, scam, format, code, tool_call, link, plan, system_leak,
    document_leak."""
    per_pair: NotRequired[int]
    """Attacks for each carrier and goal."""
    controls: NotRequired[int]
    """Harmless rows for each carrier."""
    seed: NotRequired[int]
    """The same seed over the same documents gives the same rows."""


@final
class SuiteOutput(TypedDict):
    """The dataset that was made."""
    dataset: int
    version: int
    """Id of its first version; ask it in an experiment with the scorer `attack`."""
    row_count: int
    content_hash: str


@final
class SyntaxCheck(TypedDict):
    path: str
    language: str
    problems: list[dict[str, Any]]
    """line, column and message of each."""

SystemEnum: TypeAlias = "Literal['native', 'langchain']"


@final
class TagFailuresOutput(TypedDict):
    """A tag among the failing rows."""
    tag: str
    failing: int
    rows: int
    lift: float | None
    """Its rate of failure, divided by that of all rows; null of a tag that only people gave."""


@final
class TagUseOutput(TypedDict):
    """A tag of the workspace."""
    name: str
    answers: int
    """That have it."""


@final
class TagsInputRequest(TypedDict):
    """Tags to give to an answer, and to take from it."""
    add: NotRequired[list[str]]
    remove: NotRequired[list[str]]


@final
class TagsOutput(TypedDict):
    """The tags of an answer."""
    tags: list[str]


@final
class TakenOutput(TypedDict):
    """The next answer to grade; null when nothing is left for this person."""
    sheet: SheetOutput | None

TargetKindEnum: TypeAlias = "Literal['tool', 'group', 'pattern', 'toolkit']"


@final
class Tenant(TypedDict):
    slug: str
    name: str

TextEditInputKindEnum: TypeAlias = "Literal['insert', 'replace_lines', 'delete_lines', 'replace_text']"


@final
class TextEditInputRequest(TypedDict):
    kind: TextEditInputKindEnum
    text: NotRequired[str]
    line: NotRequired[int]
    end_line: NotRequired[int]
    old: NotRequired[str]
    count: NotRequired[int]


@final
class Tool(TypedDict):
    type: TypeEnum
    function: ToolFunction


@final
class ToolCallInputRequest(TypedDict):
    id: str
    type: NotRequired[TypeEnum]
    function: ToolFunctionCallRequest

ToolCallStatus: TypeAlias = "Literal['running', 'waiting', 'succeeded', 'failed', 'denied', 'unknown', 'stopped']"


@final
class ToolCredential(TypedDict):
    id: int
    placement: ToolCredentialPlacement
    parameter: str
    last_four: str
    """Of the secret; empty for a short one."""
    created_at: str
    updated_at: str


@final
class ToolCredentialInputRequest(TypedDict):
    placement: ToolCredentialPlacement
    parameter: NotRequired[str]
    """Name of the header or parameter; the user's name for basic."""
    secret: str

ToolCredentialPlacement: TypeAlias = "Literal['bearer', 'basic', 'header', 'query']"


@final
class ToolEntry(TypedDict):
    id: int
    name: str
    title: str
    description: str
    category: str
    tags: list[str]
    is_enabled: bool
    cost_hint: str
    timeout_s: float | None
    created_at: str
    updated_at: str


@final
class ToolEntryInputRequest(TypedDict):
    title: NotRequired[str]
    description: NotRequired[str]
    """What a model reads in place of the tool's own."""
    category: NotRequired[str]
    tags: NotRequired[list[str]]
    is_enabled: NotRequired[bool]
    cost_hint: NotRequired[str]
    timeout_s: NotRequired[float | None]
    """Seconds."""
    name: str
    """The tool's."""


@final
class ToolExecuteInputRequest(TypedDict):
    tool_calls: NotRequired[list[ToolCallInputRequest]]
    """As a model wrote them; they run side by side."""
    function_name: NotRequired[str]
    """One call in place of `tool_calls`: the tool's name."""
    arguments: NotRequired[str | dict[str, Any]]
    """Of that one call: a JSON object, or its text."""
    tool_call_id: NotRequired[str]
    """Of that one call; made if not given."""
    collections: NotRequired[list[int]]
    """Ids of the collections the calls are about; default: all."""


@final
class ToolExecution(TypedDict):
    success: bool
    """Every call has ended, and none in an error."""
    error: str | None
    """What went wrong first, or that a call waits for approval; null without."""
    system: SystemEnum
    """What carried the calls out.  * `native` - native * `langchain` - langchain"""
    execution_time_ms: float
    """Of all calls together, side by side as they ran."""
    run: int | None
    """Records the calls that ended."""
    messages: list[ToolMessage]
    """Of the calls that ended, in their order; ready to be added to a history."""
    waiting_run: int | None
    """The run that waits for approval of the others; see /runs/{id}/decisions."""
    waiting: list[str]
    """Ids of the calls that wait."""


@final
class ToolFieldChange(TypedDict):
    field: str
    old: Any
    new: Any
    is_risk: bool
    """The new tool may do more, or goes elsewhere."""
    why: str


@final
class ToolFunction(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments."""


@final
class ToolFunctionCallRequest(TypedDict):
    name: str
    arguments: str | dict[str, Any]
    """A JSON object, or its text."""


@final
class ToolGrant(TypedDict):
    id: int
    effect: EffectEnum
    target_kind: TargetKindEnum
    target: str
    toolkit: int | None
    calls: CallsEnum
    subject_kind: SubjectKindEnum
    subject: str
    collection: int | None
    arguments: Any
    expires_at: str | None
    note: str
    created_at: str
    warning: str
    """Says that the grant matches no tool of the workspace now, or that its role, member or key is gone; else
    empty."""


@final
class ToolGrantInputRequest(TypedDict):
    effect: EffectEnum
    target_kind: TargetKindEnum
    target: NotRequired[str]
    """Name of the tool or group, or a pattern in which * matches any text; empty for a toolkit."""
    toolkit: NotRequired[int | None]
    """Id, for a toolkit."""
    calls: NotRequired[CallsEnum]
    subject_kind: NotRequired[SubjectKindEnum]
    subject: NotRequired[str]
    """The role, or the id of the person or key; empty for everyone."""
    collection: NotRequired[int | None]
    """Id of the one collection it is about; default: all."""
    arguments: NotRequired[list[dict[str, Any]]]
    """Conditions that must all hold: `{"kind": "path_under", "argument": "path", "value": "reports"}`; kinds:
    equals, not_equals, in, not_in, below, at_most, above, at_least, path_under, matches, select_only (no value),
    and `{"kind": "schema", "schema": {...}}` for the arguments as a whole."""
    expires_at: NotRequired[str | None]
    note: NotRequired[str]


@final
class ToolLimit(TypedDict):
    id: int
    kind: ToolLimitKind
    user: int | None
    api_key: int | None
    target_kind: ToolLimitTarget
    target: str
    period: ToolLimitPeriod
    calls: int
    used: int
    """In the present period; of a limit for each, by who used most."""
    remaining: int
    resets_at: str
    """When the next period begins."""


@final
class ToolLimitInputRequest(TypedDict):
    kind: ToolLimitKind
    """Whose calls count.  * `tenant` - the whole workspace together * `member` - a member * `key` - an API key"""
    user: NotRequired[int | None]
    """One member, by the person's id; null for each."""
    api_key: NotRequired[int | None]
    """One key, by its id; null for each."""
    target_kind: NotRequired[ToolLimitTarget]
    target: NotRequired[str]
    """Name of the tool or group; empty for all."""
    period: ToolLimitPeriod
    """In UTC.  * `minute` - a minute * `day` - a day * `month` - a month"""
    calls: int
    """Most calls a period."""

ToolLimitKind: TypeAlias = "Literal['tenant', 'member', 'key']"

ToolLimitPeriod: TypeAlias = "Literal['minute', 'day', 'month']"

ToolLimitTarget: TypeAlias = "Literal['all', 'group', 'tool']"


@final
class ToolMessage(TypedDict):
    role: ToolMessageRoleEnum
    tool_call_id: str
    name: str
    content: str
    """Text for the model; states if the call failed."""
    is_error: bool
    error_code: str
    """Empty without an error; “denied” by the policy."""

ToolMessageRoleEnum: TypeAlias = "Literal['tool']"


@final
class ToolParameterChange(TypedDict):
    name: str
    """Dotted path: `order.lines[].sku`."""
    change: ChangeKind
    type_old: str
    type_new: str
    required_old: bool | None
    required_new: bool | None
    what: list[str]
    """Keywords of its schema that differ."""
    breaks: bool
    """Calls that fitted before do not fit any more."""


@final
class ToolShapeRequest(TypedDict):
    type: TypeEnum
    function: FunctionShapeRequest


@final
class ToolSource(TypedDict):
    id: int
    kind: ToolSourceKind
    name: str
    title: str
    url: str
    document_url: str
    settings: dict[str, Any]
    """Of an OpenAPI document also: `security`, how it wants to be signed in to, and `skipped` operations."""
    allowed_hosts: list[str]
    is_enabled: bool
    status: ToolSourceStatus
    problem: str
    """Why it could not be read, and what to do."""
    current: int
    """Tools that can be called."""
    waiting: int
    """Versions that wait to be accepted."""
    gone: int
    """Tools that it does not have any more."""
    refreshed_at: str | None
    created_at: str
    updated_at: str


@final
class ToolSourceInputRequest(TypedDict):
    title: NotRequired[str]
    url: NotRequired[str]
    """Where calls go; an OpenAPI document may say it."""
    document_url: NotRequired[str]
    """Where the OpenAPI document is re-read from."""
    document: NotRequired[str]
    """The OpenAPI document itself."""
    settings: NotRequired[dict[str, Any]]
    """What the kind needs; nothing secret."""
    allowed_hosts: NotRequired[list[str]]
    """Further hosts that calls may go to."""
    is_enabled: NotRequired[bool]
    kind: ToolSourceKind
    name: str
    """Small letters, digits and hyphens: the group its tools are granted by."""
    accept_all: NotRequired[bool]
    """Take all tools that it is found to have at once."""

ToolSourceKind: TypeAlias = "Literal['openapi', 'mcp', 'plugin']"


@final
class ToolSourceRefreshRequest(TypedDict):
    accept_all: NotRequired[bool]
    """Take tools that it did not have before at once; changed ones wait."""


@final
class ToolSourceRefreshing(TypedDict):
    job: int
    """The job that reads it; the source says how that ended."""

ToolSourceStatus: TypeAlias = "Literal['new', 'ready', 'failed']"


@final
class ToolSuggestion(TypedDict):
    """A tool that fits, the best first."""
    name: str
    title: str
    description: str
    group: str
    effect: str
    """Whether the caller's calls are allowed or need approval: `allow` or `ask`."""
    score: float
    """0 to 1, for comparing within one answer only."""
    calls: int
    """In the whole workspace, in the last 90 days."""
    succeeded: int
    """Of those calls."""


@final
class ToolVersion(TypedDict):
    id: int
    tool_name: str
    number: int
    state: ToolVersionState
    is_gone: bool
    """The source no longer has this tool."""
    digest: str
    created_at: str
    decided_at: str | None


@final
class ToolVersionDetail(TypedDict):
    id: int
    tool_name: str
    number: int
    state: ToolVersionState
    is_gone: bool
    """The source no longer has this tool."""
    digest: str
    created_at: str
    decided_at: str | None
    spec: dict[str, Any]
    """The tool as its source described it."""
    diff: ToolVersionDiff
    """From the current version, or from the one before."""


@final
class ToolVersionDiff(TypedDict):
    old_number: int
    """0 when there is no older version."""
    new_number: int
    risks: list[str]
    parameters: list[ToolParameterChange]
    fields: list[ToolFieldChange]

ToolVersionState: TypeAlias = "Literal['waiting', 'current', 'retired', 'rejected']"


@final
class ToolVersionsAcceptRequest(TypedDict):
    versions: list[int]
    """Ids of versions, of tools that differ."""
    force: NotRequired[bool]
    """Accept them although contract tests fail; the audit trail says so."""


@final
class ToolVersionsInputRequest(TypedDict):
    versions: list[int]
    """Ids of versions, of tools that differ."""


@final
class Toolkit(TypedDict):
    id: int
    name: str
    description: str
    tools: list[str]
    """Return the names of its tools."""
    created_at: str


@final
class ToolkitChangeRequest(TypedDict):
    tools: list[str]
    """Names; replaces what it contained."""
    description: NotRequired[str]


@final
class ToolkitInputRequest(TypedDict):
    tools: list[str]
    """Names; replaces what it contained."""
    description: NotRequired[str]
    name: str


@final
class Tools(TypedDict):
    tools: list[Tool]
    """Ready to be sent to a model as its tools."""


@final
class Trace(TypedDict):
    run_id: int
    model: str
    status: RunStatus
    question: str
    """Empty for a run outside of a conversation."""
    searched_for: str
    """The question as it was rewritten for the first search; empty: as it was asked."""
    plan: TracePlan | None
    steps: list[TraceStep]
    """The model's turns."""
    removed_citations: int
    limit_reached: str
    usage: dict[str, int]
    cost_usd: str | None
    queued_at: str
    started_at: str | None
    finished_at: str | None


@final
class TraceCall(TypedDict):
    id: str
    parent_id: str
    """The call that made it; empty: the model did."""
    name: str
    status: str
    error_code: str
    arguments: Any
    """Secrets are masked."""
    decision: str
    """Of the policy: allow, ask or deny."""
    decision_why: str
    summary: str
    started_at: str
    duration_ms: int | None
    results: list[TraceHit]
    """What a search has found, best first."""


@final
class TraceHit(TypedDict):
    rank: int
    chunk_id: int
    document_id: int | None
    document: str
    page: int | None
    score: float | None
    vector_rank: int | None
    """Place in the search by meaning."""
    lexical_rank: int | None
    """Place in the search by words."""
    exact_rank: int | None
    """Place among exact codes and numbers."""
    citation: int | None
    """Number of the citation it became."""


@final
class TracePlan(TypedDict):
    reasoning: str
    attempt: int
    """1 for the first plan; more: it was made anew."""
    steps: list[TracePlanStep]


@final
class TracePlanStep(TypedDict):
    number: int
    action: str
    description: str
    status: str
    """pending, running, waiting, ok, error or skipped."""


@final
class TraceStep(TypedDict):
    index: int
    model: str
    is_by_rule: bool
    """No model was asked for this turn."""
    stop: str
    reasoning: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: str | None
    service_tier: str
    """The provider's service tier it is priced by; empty for the usual one."""
    finished_at: str
    calls: list[TraceCall]


@final
class TrendOutput(TypedDict):
    """One score of a rule over the last 30 days."""
    name: str
    is_judged: bool
    mean: float
    count: int
    days: list[dict[str, Any]]
    """Return the daily means; days without a score are left out."""


@final
class TrialOutput(TypedDict):
    """An answer with its scores."""
    id: int
    arm: int
    row_ref: int
    """The row's id, the same in every version."""
    position: int
    """Of the row in the version."""
    repeat: NotRequired[int]
    state: NotRequired[TrialOutputStateEnum]
    answer: NotRequired[str]
    error: NotRequired[str]
    """Why there is no answer."""
    latency_ms: NotRequired[float | None]
    cost_usd: NotRequired[str | None]
    """Empty: the price is not known."""
    judge_usd: NotRequired[str]
    judge_asked: NotRequired[int]
    """Requests to judges."""
    judge_cached: NotRequired[int]
    """Of them, those that were answered before and cost nothing."""
    scores: list[ScoreOutput]

TrialOutputStateEnum: TypeAlias = "Literal['pending', 'answering', 'scoring', 'away', 'done', 'failed', 'stopped', 'skipped']"


@final
class Turn(TypedDict):
    id: int
    index: int
    """Counts the questions in the order they were asked, over all branches, from 0."""
    parent_id: int | None
    """The turn it follows; turns with the same one are branches."""
    run_id: int
    """Follow it at /runs/{id}/events."""
    status: RunStatus
    model: str
    assistant_version: NotRequired[int | None]
    """Number of the version of the conversation's assistant that answers; null for the model alone."""
    question: str
    answer: str
    """Markdown with markers [1]; empty until it is finished."""
    output: Any
    """The answer as the assistant's output format has it; null for text."""
    problem: str
    """Why an answer that should have a form has none."""
    marks: list[Mark]
    """Sentences of the answer to check, in its order."""
    unsupported: list[list[int]]
    """Of `marks`, those that did not pass: [start, end] in characters."""
    compared: str
    """What the sentences were compared with; empty where it is not kept."""
    citations: list[Citation]
    attachments: list[Attachment]
    """Files that came with the question."""
    removed_citations: int
    """Markers that named no retrieved passage."""
    error_code: str
    error_message: str
    created_at: str


@final
class TurnInputRequest(TypedDict):
    text: str
    """The question."""
    client_id: NotRequired[str]
    """Made by you, once per question; the header Idempotency-Key does the same. Sent again, it returns the turn
    that exists."""
    model: NotRequired[str]
    assistant: NotRequired[str | None]
    """Slug of who answers from now on, empty for the model alone; null or left out changes nothing."""
    attachments: NotRequired[list[int]]
    """Ids of files that were attached to the conversation for this question."""

TypeEnum: TypeAlias = "Literal['function']"


@final
class UploadRequest(TypedDict):
    file: transport.File
    """The file; its name is kept."""


@final
class UploadedDocument(TypedDict):
    id: int
    collection_id: int
    name: str
    path: str
    """Its identity in the collection."""
    version: int
    live_from: str | None
    """When it began to be searched."""
    live_to: str | None
    """When a newer version took its place; null for the current one."""
    source: str
    is_restricted: bool
    document_type: str
    type_reason: str
    """The rule that decided on the type."""
    tags: list[str]
    dated: str | None
    attributes: dict[str, Any]
    """The team's own metadata."""
    title: str
    media_type: str
    size: int
    """Bytes."""
    sha256: str
    status: DocumentStatus
    stage: StageEnum
    """The stage that runs, or the one where it failed.  * `fetch` - Fetching * `parse` - Reading * `chunk` -
    Chunking * `summarise` - Summarising * `embed` - Embedding * `index` - Indexing"""
    progress_current: int
    progress_total: int
    waiting: DocumentWaiting | None
    """Set while it waits for its turn, at the start and between two slices of work."""
    error_code: str
    error_message: str
    warnings: list[str]
    page_count: int
    skipped_pages: int
    chunk_count: int
    vector_count: int
    lexical_count: int
    identifiers_total: int
    """Distinct codes and numbers of the original."""
    identifiers_found: int
    """Of them found in some chunk."""
    timings: dict[str, float]
    """Seconds per stage."""
    created_at: str
    updated_at: str
    finished_at: str | None
    created: bool
    """False when the collection had a document with the same bytes: that one is returned."""


@final
class UsageFigures(TypedDict):
    """Figures of some days; the most used first, days in their order."""
    since: str
    until: str
    total: UsageRow
    days: list[UsageRow]
    tools: list[UsageRow]
    members: list[UsageRow]
    """Empty for who sees their own figures only."""
    models: list[UsageRow]


@final
class UsageRow(TypedDict):
    """Figures of one tool, member, model or day, or of all."""
    key: str
    """Name, id or day; empty of all."""
    label: str
    calls: int
    """Of tools."""
    errors: int
    """Calls that failed, or whose outcome is unknown."""
    denied: int
    p50_ms: float | None
    """Half of the calls took no longer; of a model, of the requests."""
    p95_ms: float | None
    requests: int
    """To models."""
    lost: int
    """Requests that failed after they were billed."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Of a tool: its calls' shares of the model turns that made them."""


@final
class VarianceOutput(TypedDict):
    """Variance components, in squared units of the score; null where nothing was repeated."""
    rows: float | None
    generator: float | None
    """Between answers to one row."""
    judge: float | None
    """Between judgements of one answer."""
    judge_share: float | None
    """The judge's part of what varies within rows."""


@final
class VersionInputRequest(TypedDict):
    """What a version is made of; a field that is left out has its default."""
    mode: NotRequired[ModeEnum]
    model: NotRequired[str]
    """An id of /models; empty for the workspace's default when a question is asked."""
    prompt: NotRequired[str]
    """What the model reads beside the platform's own rules."""
    collections: NotRequired[list[int] | None]
    """Ids of those it searches; null for all, later ones too."""
    toolkit: NotRequired[int | None]
    """The only tools it may use, as far as the person who asks may."""
    has_toolkit: NotRequired[bool]
    """True without a toolkit: no tools at all. False: all tools that the person may use."""
    output: NotRequired[OutputEnum]
    output_name: NotRequired[str]
    """Name of the schema, with the output `schema`."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of type object, with the output `schema`."""
    options: NotRequired[dict[str, Any]]
    """Settings of the mode. All: max_tool_calls, memory_turns, temperature, effort, service_tier, cache_ttl,
    background; tools, code and planned: max_steps; planned: max_replans; quick: top_k, neighbours, document_types,
    filters."""
    starters: NotRequired[list[str]]
    """Questions that a new conversation offers."""
    helpers: NotRequired[list[int]]
    """Ids of assistants that it may ask as tools."""
    note: NotRequired[str]
    """What has changed."""


@final
class Webhook(TypedDict):
    id: int
    url: str
    events: list[str]
    description: str
    is_enabled: bool
    failures: int
    """Events given up one after another."""
    disabled_at: str | None
    """When it was switched off because of its failures."""
    created_at: str
    updated_at: str


@final
class WebhookCreated(TypedDict):
    id: int
    url: str
    events: list[str]
    description: str
    is_enabled: bool
    failures: int
    """Events given up one after another."""
    disabled_at: str | None
    """When it was switched off because of its failures."""
    created_at: str
    updated_at: str
    secret: str
    """Signs the calls; shown this once."""


@final
class WebhookDelivery(TypedDict):
    id: int
    event_id: str
    """The same for all deliveries of one event."""
    event: EventEnum
    object_key: str
    """What it is about, for example `run:12`."""
    status: DeliveryStatus
    attempts: int
    response_status: int | None
    error: str
    """Of the last attempt; empty when it was taken."""
    duration_ms: int | None
    created_at: str
    attempted_at: str | None
    payload: dict[str, Any]


@final
class WebhookInputRequest(TypedDict):
    url: str
    """http(s), on a public host."""
    events: list[EventsEnum]
    description: NotRequired[str]

WhenBusyEnum: TypeAlias = "Literal['refuse', 'queue']"
