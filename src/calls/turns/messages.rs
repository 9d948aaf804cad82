//! The messages of a turn that is over: what the model gets for each call, in the vendor's shape.

use std::collections::HashSet;
use std::sync::Arc;

use super::content::{self, ContentLimits};
use super::model_answer::{ModelAnswer, ModelBlock};
use super::read::ReadCall;
use super::settled::{Settled, TurnCallStatus};
use super::turn::{Turn, TurnPhase};

impl Turn {
    /// The messages for the next request, as a JSON array; `None` while a call is not over. Calls
    /// of others are left out.
    pub fn messages(&self) -> Option<String> {
        let phases = self.phases();
        let settled: Option<Vec<&Arc<Settled>>> = phases
            .iter()
            .map(|phase| match phase {
                TurnPhase::Over(settled) => Some(settled),
                _ => None,
            })
            .collect();
        let mut answered = HashSet::new();
        let mut answers: Vec<ModelAnswer<'_>> = Vec::new();
        for (number, (call, settled)) in self.calls.iter().zip(settled?).enumerate() {
            let id = call.read.id.as_deref().filter(|id| !id.is_empty());
            let is_repeated = id.is_some_and(|id| !answered.insert(id));
            if settled.status == TurnCallStatus::NotOurs {
                continue;
            }
            if is_repeated {
                // A vendor takes one result for each id, so the first one has to say it. If that is
                // for the calling program to answer, the model gets no more than its answer.
                if let Some(first) = answers
                    .iter_mut()
                    .find(|answer| answer.call.id.as_deref() == id)
                {
                    add_text(first, settled.said.as_deref());
                }
                continue;
            }
            answers.push(self.answer(number, &call.read, settled).0);
        }
        Some(self.format.write(&answers))
    }

    /// Whether the model gets less than the whole result of a call that is over.
    pub fn is_cut(&self, number: usize, settled: &Settled) -> bool {
        self.calls
            .get(number)
            .is_some_and(|call| self.answer(number, &call.read, settled).1)
    }

    fn answer<'a>(
        &self,
        number: usize,
        call: &'a ReadCall,
        settled: &Settled,
    ) -> (ModelAnswer<'a>, bool) {
        let id = self.call_id(number);
        let is_error = settled.status.is_error();
        let limits = ContentLimits {
            text: self.settings.text_bytes,
            all: self.settings.result_bytes,
            takes: &|media_type| {
                self.format
                    .takes(media_type, self.settings.model.as_deref())
            },
            is_error,
            takes_files_in_errors: self.format.takes_files_in_errors(),
            kept_as: &id,
        };
        let blocks = match (&settled.said, &settled.content, &settled.result) {
            (Some(said), ..) => vec![ModelBlock::Text(said.clone())],
            (None, Some(whole), _) => content::of_mcp(whole).unwrap_or_default(),
            (None, None, Some(value)) => vec![content::of_value(value)],
            (None, None, None) => Vec::new(),
        };
        // A file that is not shown is named by a text beside the value.
        let has_files = blocks
            .iter()
            .any(|block| matches!(block, ModelBlock::File { .. }));
        let (blocks, is_cut) = content::within(blocks, &limits);
        let mut answer = ModelAnswer {
            call,
            is_error,
            blocks,
            value: None,
        };
        if !is_cut && !has_files {
            answer.value.clone_from(&settled.result);
        }
        add_text(&mut answer, settled.note.as_deref());
        let declined = settled.declined.map(|why| why.to_string());
        add_text(&mut answer, declined.as_deref());
        (answer, is_cut)
    }
}

/// Says more behind an answer. Its value alone does not say that.
fn add_text(answer: &mut ModelAnswer<'_>, text: Option<&str>) {
    let Some(text) = text else { return };
    let known = |block: &ModelBlock| matches!(block, ModelBlock::Text(known) if known == text);
    if !answer.blocks.iter().any(known) {
        answer.blocks.push(ModelBlock::Text(text.to_owned()));
        answer.value = None;
    }
}
