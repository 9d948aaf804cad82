//! The functions of the embedding program that tools of the type `go` name, and what a function
//! learns of a call.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use callsheet_provide::{Function, ToolFuture};
use serde_json::Value;
use tokio::time::Instant;

use crate::model::CallerInfo;
use crate::runtime::{Stop, StopTrigger};

/// What a function of the embedding program learns of a call besides its arguments.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Where the call comes from, as far as its caller says.
    pub caller: CallerInfo,
    /// When the call is answered as timed out; `None` if the program itself runs the function.
    pub deadline: Option<Instant>,
    /// Completes its waits when the caller cancels the call. A function that ends then saves work;
    /// its answer is not waited for any more once the caller is gone.
    pub cancelled: Stop,
}

/// Runs one tool: from its arguments, as they were sent, and what is known of the call.
pub type ContextFunction = Arc<dyn Fn(Value, CallContext) -> ToolFuture + Send + Sync>;

/// Functions by their qualified names. Cheap to clone.
#[derive(Clone, Default)]
pub struct Functions(Arc<BTreeMap<String, ContextFunction>>);

impl CallContext {
    /// Of a function that the program itself runs: there is no caller, no limit and no end.
    pub fn of_program() -> Self {
        Self {
            caller: CallerInfo::default(),
            deadline: None,
            cancelled: StopTrigger::new().1,
        }
    }
}

/// A [`ContextFunction`] made of an async function whose error is any text.
pub fn context_function<F, A, E>(run: F) -> ContextFunction
where
    F: Fn(Value, CallContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, E>> + Send + 'static,
    E: fmt::Display,
{
    Arc::new(move |arguments, context| {
        let answer = run(arguments, context);
        Box::pin(async move { answer.await.map_err(|error| error.to_string()) })
    })
}

/// A [`ContextFunction`] made of a function that takes the arguments alone.
pub fn without_context(function: Function) -> ContextFunction {
    Arc::new(move |arguments, _| function(arguments))
}

impl Functions {
    /// These functions.
    pub fn new(functions: BTreeMap<String, ContextFunction>) -> Self {
        Self(Arc::new(functions))
    }

    /// The function of this name.
    pub fn get(&self, name: &str) -> Option<&ContextFunction> {
        self.0.get(name)
    }
}

/// The names alone.
impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
