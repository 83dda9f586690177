// What OpenAI's own JavaScript client does with the running product; ends with the names of the checks that passed.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { CLIENT, BASE_URL, API_KEY, POOR_KEY } = process.env;
const { default: OpenAI } = await import(pathToFileURL(`${CLIENT}/index.mjs`).href);
const client = new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY, maxRetries: 0 });
const [PLAIN, SLOW, SCRIPTED, JSON_MODEL, FAILING] = [
  "words12",
  "words400-gap50",
  "scripted",
  "json",
  "fail400",
].map(
  (name) => `compatible/fake-${name}`,
);
const messages = [{ role: "user", content: "What is the duty on lamps?" }];
const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
const weather = { name: "weather", description: "Tell the weather.", parameters };
const sky = { Lyon: "sunny", Graz: "wet" };
const duty = {
  type: "object",
  properties: { percent: { type: "integer" } },
  required: ["percent"],
  additionalProperties: false,
};

const checks = {
  async "models are listed"() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.equal(ids[0], "assistant/workspace");
    assert.equal((await client.models.retrieve(PLAIN)).id, PLAIN);
  },
  async "a chat is streamed as it is answered"() {
    const stream = client.chat.completions.stream({
      model: PLAIN,
      messages,
      stream_options: { include_usage: true },
    });
    let said = "";
    stream.on("content", (delta) => (said += delta));
    const final = await stream.finalChatCompletion();
    assert.equal(said, final.choices[0].message.content);
    assert.equal(said.trim().split(" ").length, 12);
    assert.equal(final.usage.total_tokens, 120);
  },
  async "sources come with an answer"() {
    const whole = await client.chat.completions.create({ model: "assistant/workspace", messages });
    assert.equal(whole.groundwork.citations[0].document_name, "lamps.txt");
  },
  async "the client runs its tools side by side"() {
    const runner = client.chat.completions.runTools({
      model: SCRIPTED,
      messages,
      stream: true,
      tools: [{
        type: "function",
        function: { ...weather, parse: JSON.parse, function: ({ query }) => sky[query] },
      }],
    });
    assert.equal(await runner.finalContent(), "It is sunny and wet.");
  },
  async "an answer has its form"() {
    const whole = await client.chat.completions.create({
      model: JSON_MODEL,
      messages,
      response_format: { type: "json_schema", json_schema: { name: "duty", schema: duty, strict: true } },
    });
    assert.deepEqual(JSON.parse(whole.choices[0].message.content), { percent: 4 });
  },
  async "a response is streamed, kept and gone on from"() {
    const stream = client.responses.stream({ model: PLAIN, input: "One?" });
    let said = "";
    stream.on("response.output_text.delta", (event) => (said += event.delta));
    const first = await stream.finalResponse();
    assert.equal(said, first.output_text);
    assert.equal((await client.responses.retrieve(first.id)).output_text, said);
    const second = await client.responses.create({
      model: PLAIN,
      input: "Two?",
      previous_response_id: first.id,
    });
    assert.equal(second.status, "completed");
    assert.notEqual(second.id, first.id);
  },
  async "a response's calls are answered by the next request"() {
    const tools = [{ type: "function", strict: false, ...weather }];
    const first = await client.responses.create({ model: SCRIPTED, input: "Weather?", tools });
    const input = first.output.map(({ call_id, arguments: text }) => ({
      type: "function_call_output",
      call_id,
      output: sky[JSON.parse(text).query],
    }));
    assert.equal(input.length, 2);
    const second = await client.responses.create({
      model: SCRIPTED,
      input,
      tools,
      previous_response_id: first.id,
    });
    assert.equal(second.output_text, "It is sunny and wet.");
  },
  async "texts are embedded"() {
    const made = await client.embeddings.create({ model: "local/all-MiniLM-L6-v2", input: ["lamp", "soup"] });
    assert.deepEqual(made.data.map((row) => row.embedding.length), [384, 384]);
  },
  async "errors are errors"() {
    await assert.rejects(client.chat.completions.create({ model: "gpt-none", messages }), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      return error.code === "model_not_found";
    });
    await assert.rejects(client.responses.create({ model: FAILING, input: "?" }), OpenAI.APIError);
    await assert.rejects(async () => {
      for await (const _ of await client.chat.completions.create({ model: FAILING, messages, stream: true }));
    }, OpenAI.APIError);
    const stranger = new OpenAI({ baseURL: BASE_URL, apiKey: "gw_nobody", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  },
  async "no money is said once"() {
    let asked = 0;
    const counted = (...request) => ((asked += 1), fetch(...request));
    const poor = new OpenAI({ baseURL: BASE_URL, apiKey: POOR_KEY, maxRetries: 3, fetch: counted });
    for (const stream of [false, true]) {
      await assert.rejects(poor.chat.completions.create({ model: PLAIN, messages, stream }), (error) => {
        assert.ok(error instanceof OpenAI.RateLimitError);
        return error.code === "budget_exceeded" && error.type === "insufficient_quota";
      });
    }
    assert.equal(asked, 2);
  },
  // The last: the test behind this looks at the run that was left.
  async "a client goes away"() {
    const stream = await client.responses.create({ model: SLOW, input: "Long?", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
  },
};

const passed = [];
for (const [name, check] of Object.entries(checks)) {
  await check();
  passed.push(name);
}
console.log(JSON.stringify(passed));
