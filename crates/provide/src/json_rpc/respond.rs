//! From the text of a client to the text of its answers.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};

use super::envelope::{AnswerError, IncomingMessage, Received, answer, read};

/// Messages of one batch that are worked on at a time.
const AT_A_TIME: usize = 8;
/// Bytes of the answers to one batch, after which its further requests are refused: one batch could
/// request a large list a thousand times.
const MAX_ANSWERS: usize = 64 << 20;

/// The answers to a text, in the order of its requests; `None` if nothing in it wants one. `run`
/// gives the result of a method, as JSON text, for its parameters, which are the JSON text of an
/// object or an array. The text of a single message is dropped before that, so that a request that
/// takes long holds it once.
pub async fn respond<T, F, R>(text: T, run: F) -> Option<String>
where
    T: AsRef<[u8]>,
    F: Fn(String, Option<String>) -> R,
    R: Future<Output = Result<String, AnswerError>>,
{
    respond_within(text, run, MAX_ANSWERS).await
}

async fn respond_within<T, F, R>(text: T, run: F, most: usize) -> Option<String>
where
    T: AsRef<[u8]>,
    F: Fn(String, Option<String>) -> R,
    R: Future<Output = Result<String, AnswerError>>,
{
    let messages = match read(text.as_ref()) {
        Received::One(message) => {
            drop(text);
            return respond_to(message, &run).await;
        }
        Received::Batch(messages) => messages,
    };
    let run = &run;
    let bytes = &AtomicUsize::new(0);
    let answers = stream::iter(messages).map(|message| async move {
        let answered = match message {
            IncomingMessage::Request { id, .. } if bytes.load(Ordering::Relaxed) > most => {
                let why = format!("the answers to this batch have more than {most} bytes; this request was not run");
                Some(answer(&id, Err(AnswerError::refused(why))))
            }
            message => respond_to(message, run).await,
        };
        bytes.fetch_add(answered.as_ref().map_or(0, String::len), Ordering::Relaxed);
        answered
    });
    let answers: Vec<String> = answers
        .buffered(AT_A_TIME)
        .filter_map(std::future::ready)
        .collect()
        .await;
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

async fn respond_to<F, R>(message: IncomingMessage, run: &F) -> Option<String>
where
    F: Fn(String, Option<String>) -> R,
    R: Future<Output = Result<String, AnswerError>>,
{
    match message {
        IncomingMessage::Request { id, method, params } => {
            Some(answer(&id, run(method, params).await))
        }
        IncomingMessage::Notification => None,
        IncomingMessage::Refused { id, error } => {
            Some(answer(id.as_deref().unwrap_or("null"), Err(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_batch_whose_answers_are_too_large_is_answered_in_part() {
        let run = AtomicUsize::new(0);
        let request = r#"{"jsonrpc":"2.0","method":"m","id":1}"#;
        let batch = format!("[{}]", vec![request; 100].join(","));
        let answer = |_, _| {
            run.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(format!("\"{}\"", "x".repeat(100))))
        };
        let answers = respond_within(batch.as_bytes(), answer, 1_000)
            .await
            .unwrap();
        let count = run.load(Ordering::Relaxed);
        assert!((8..30).contains(&count), "{count} were run");
        assert_eq!(
            answers.matches("this request was not run").count(),
            100 - count
        );
        assert_eq!(answers.matches("\"id\":1").count(), 100);
    }
}
