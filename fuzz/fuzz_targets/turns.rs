//! The reader of vendors' responses. The first line of the input is a format, the rest a body. What
//! can be read can be answered, and the answer is one JSON list, always the same.

#![no_main]

use callsheet::calls::turns::{ModelAnswer, ModelBlock, TURN_FORMATS, by_id, read_response};
use callsheet::model::JsonText;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (format, body) = text.split_once('\n').unwrap_or(("openai", text));
    let format = by_id(format).unwrap_or(TURN_FORMATS[0]);
    let Ok(read) = read_response(format, body) else {
        return;
    };
    assert_eq!(read_response(format, body).as_ref(), Ok(&read));
    let answers = |is_error: bool| -> Vec<ModelAnswer<'_>> {
        let file = |media_type: &str| ModelBlock::File {
            media_type: media_type.into(),
            data: "AAAA".into(),
        };
        let answer = |(number, call)| {
            let mut blocks = vec![ModelBlock::Text(format!("{number} \"\\\n"))];
            if format.takes("image/png", read.model.as_deref()) {
                blocks.push(file("image/png"));
            }
            ModelAnswer {
                call,
                is_error,
                blocks,
                value: JsonText::parse("{\"a\":1e999}").ok(),
            }
        };
        read.calls.iter().enumerate().map(answer).collect()
    };
    for is_error in [false, true] {
        let written = format.write(&answers(is_error));
        let list = JsonText::parse(&written).expect("one JSON value");
        assert!(list.get().starts_with('['), "{written}");
        assert_eq!(written, format.write(&answers(is_error)));
    }
    for call in &read.calls {
        if let Ok(arguments) = &call.arguments {
            assert!(arguments.get().starts_with('{'), "{arguments:?}");
        }
    }
});
