//! The functions of the embedding program that tools of the type `go` name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use callsheet_provide::Function;

/// Functions by their qualified names. Cheap to clone.
#[derive(Clone, Default)]
pub struct Functions(Arc<BTreeMap<String, Function>>);

impl Functions {
    /// These functions.
    pub fn new(functions: BTreeMap<String, Function>) -> Self {
        Self(Arc::new(functions))
    }

    /// The function of this name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }
}

/// The names alone.
impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
