//! OpenAI Chat Completions `tools`: an array that can be pasted into a request.
//!
//! One schema that the vendor refuses fails the whole request, so each schema goes through
//! transforms and a tool that cannot be made acceptable is left out with a finding. Only
//! `strict=true` writes a `strict` key: without it the vendor takes schemas as they are.

use super::limits::{self, FormatLimits};
use super::schema::Transform;
use super::vendor::Vendor;
use super::{Encoded, Format, FormatOptions, ListFrame, ListHead, chat, strict};
use crate::model::ViewTool;

/// `format=openai`.
#[derive(Debug)]
pub struct OpenAiFormat;

static VENDOR: Vendor = Vendor {
    as_is: None,
    variants: &[(
        FormatOptions {
            strict: true,
            cache: false,
            deferring: false,
        },
        &STRICT,
    )],
    ..chat::like("openai", &limits::OPENAI)
};

static STRICT: Vendor = Vendor {
    strict: Some(&strict::OPENAI),
    ..chat::like("openai+strict", &limits::OPENAI)
};

impl Format for OpenAiFormat {
    fn id(&self) -> &'static str {
        VENDOR.id()
    }

    fn limits(&self) -> &FormatLimits {
        VENDOR.limits()
    }

    fn for_llm(&self) -> bool {
        VENDOR.for_llm()
    }

    fn steps(&self) -> &'static [Transform] {
        VENDOR.steps()
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        VENDOR.encode(tool)
    }

    fn frame(&self, head: &ListHead<'_>) -> ListFrame {
        VENDOR.frame(head)
    }

    fn variant(&self, options: FormatOptions) -> Option<&'static dyn Format> {
        VENDOR.variant(options)
    }
}
