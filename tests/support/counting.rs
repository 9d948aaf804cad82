//! A format that tells how much work was done with it.

use std::sync::atomic::{AtomicUsize, Ordering};

use callsheet::formats::native::NativeFormat;
use callsheet::formats::{Encoded, Format, FormatLimits, ListFrame, ListHead};
use callsheet::model::ViewTool;

/// Native, but it counts the tools it encodes.
#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicUsize);

impl Counting {
    pub(crate) fn leaked() -> &'static Self {
        Box::leak(Box::default())
    }

    /// How many it has encoded since the last time.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Format for Counting {
    fn id(&self) -> &'static str {
        "counting"
    }
    fn limits(&self) -> &FormatLimits {
        NativeFormat.limits()
    }
    fn for_llm(&self) -> bool {
        false
    }
    fn encode(&self, tool: &ViewTool) -> Encoded {
        self.0.fetch_add(1, Ordering::SeqCst);
        NativeFormat.encode(tool)
    }
    fn frame(&self, head: &ListHead<'_>) -> ListFrame {
        NativeFormat.frame(head)
    }
}
