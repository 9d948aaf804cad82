//! The recipe for a format, followed outside of callsheet: what its list looks like, how the tool
//! calls in its responses are known from those of others, and no other code that knows it.

use callsheet::calls::turns::{
    BodyMarks, ModelAnswer, ModelBlock, ReadCall, ReadError, ReadTurn, TURN_FORMATS, TurnFormat,
    read_response,
};
use callsheet::catalog::{View, ViewQuery};
use callsheet::formats::limits::Unions;
use callsheet::formats::{Encoded, Format, FormatLimits, ListFrame, ListHead};
use callsheet::model::{JsonText, ViewTool};
use callsheet::views::render;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::offers;

/// The id of the format, of which lists and turns have the same.
const POSTCARD: &str = "postcard";
/// What it accepts.
static LIMITS: FormatLimits = FormatLimits {
    max_tools: None,
    name: None,
    described: None,
    empty_description: false,
    root_barred: &[],
    barred: &[],
    key: None,
    max_depth: None,
    unions: Unions::All,
    token_bytes: 29,
};

/// A tool is a line of a card.
struct PostcardFormat;

impl Format for PostcardFormat {
    fn id(&self) -> &'static str {
        POSTCARD
    }

    fn limits(&self) -> &FormatLimits {
        &LIMITS
    }

    fn for_llm(&self) -> bool {
        true
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        let line = json!({"dear": tool.name.as_str()});
        Encoded {
            json: Some(line.to_string().into_bytes()),
            findings: Vec::new(),
        }
    }

    fn frame(&self, _: &ListHead<'_>) -> ListFrame {
        ListFrame {
            open: b"{\"lines\":[".to_vec(),
            close: b"]}".to_vec(),
        }
    }
}

/// A response is a card with wishes, or a postscript alone.
#[derive(Debug)]
struct PostcardTurns;

impl TurnFormat for PostcardTurns {
    fn id(&self) -> &'static str {
        POSTCARD
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        body.begins("wishes", '[')
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        message.text("role") == "aunt"
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        body.has("half_a_card")
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let body: Value = serde_json::from_str(body)?;
        let call = |wish: &Value| ReadCall {
            id: None,
            name: wish["dear"].as_str().unwrap().to_owned(),
            arguments: Ok(JsonText::parse(&wish["with"].to_string()).unwrap()),
            whole: None,
            is_foreign: false,
        };
        Ok(ReadTurn {
            calls: body["wishes"]
                .as_array()
                .unwrap()
                .iter()
                .map(call)
                .collect(),
            model: None,
        })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let text = |answer: &ModelAnswer<'_>| match &answer.blocks[..] {
            [ModelBlock::Text(text)] => json!({"thanks": text, "from": answer.call.name}),
            _ => panic!("a card has one text"),
        };
        answers.iter().map(text).collect::<Value>().to_string()
    }
}

fn card() -> Value {
    json!({"wishes": [{"dear": "read", "with": {"page": 7}}]})
}

#[test]
fn a_list_is_written_as_the_format_says() {
    let catalog = offers::catalog(&[("library", &["find", "read"])], &[]);
    let view = View::select(&catalog, &ViewQuery::default());
    let list = render(&view, Timestamp::UNIX_EPOCH, &PostcardFormat).body;
    assert_eq!(
        String::from_utf8(list).unwrap(),
        r#"{"lines":[{"dear":"find"},{"dear":"read"}]}"#
    );
}

#[test]
fn the_calls_of_a_response_are_read_and_their_results_written() {
    let turn = read_response(&PostcardTurns, &card().to_string()).unwrap();
    assert_eq!(turn.calls.len(), 1);
    assert_eq!(turn.calls[0].name, "read");
    let blocks = vec![ModelBlock::Text("the page".to_owned())];
    let answer = ModelAnswer {
        call: &turn.calls[0],
        is_error: false,
        blocks,
        value: None,
    };
    assert_eq!(
        PostcardTurns.write(&[answer]),
        r#"[{"thanks":"the page","from":"read"}]"#
    );
    let alone = json!({"role": "aunt", "wishes": []}).to_string();
    assert_eq!(read_response(&PostcardTurns, &alone).unwrap().calls, []);
}

#[test]
fn its_marks_tell_its_bodies_from_those_of_vendors_and_theirs_from_its_own() {
    let refused = |format: &dyn TurnFormat, body: Value| {
        read_response(format, &body.to_string()).unwrap_err()
    };
    for (body, vendor) in [
        (json!({"choices": []}), "openai"),
        (json!({"candidates": []}), "gemini"),
        (
            json!({"role": "assistant", "content": [{"type": "tool_use"}]}),
            "anthropic",
        ),
    ] {
        let expected = ReadError::OtherFormat {
            format: POSTCARD,
            like: vendor,
        };
        assert_eq!(refused(&PostcardTurns, body), expected);
    }
    assert_eq!(
        refused(&PostcardTurns, json!({"half_a_card": 1})),
        ReadError::Stream
    );
    assert_eq!(
        refused(&PostcardTurns, json!({"letter": 1})),
        ReadError::UnknownFormat(POSTCARD)
    );
    for vendor in TURN_FORMATS {
        assert_eq!(
            refused(*vendor, card()),
            ReadError::UnknownFormat(vendor.id())
        );
    }
}
