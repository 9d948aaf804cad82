//! The schema of one parameter (`ParameterSchema` in the protocol), built by kind.

use serde_json::{Map, Number, Value};

/// One parameter of a tool, or one property or element inside a parameter. Optional unless
/// [`Parameter::required`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    schema: Map<String, Value>,
    required: bool,
}

impl Parameter {
    /// A text.
    pub fn string(description: impl Into<String>) -> Self {
        Self::of_kind("string", description)
    }

    /// A whole number.
    pub fn integer(description: impl Into<String>) -> Self {
        Self::of_kind("integer", description)
    }

    /// Any number.
    pub fn number(description: impl Into<String>) -> Self {
        Self::of_kind("number", description)
    }

    /// True or false.
    pub fn boolean(description: impl Into<String>) -> Self {
        Self::of_kind("boolean", description)
    }

    /// One of the given texts (`enum`).
    pub fn choice<T: Into<String>>(
        description: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let values: Vec<Value> = values
            .into_iter()
            .map(|value| value.into().into())
            .collect();
        Self::string(description).keyword("enum", values)
    }

    /// A list whose elements are like `items`.
    pub fn array(description: impl Into<String>, items: Self) -> Self {
        Self::of_kind("array", description).keyword("items", items.schema)
    }

    /// An object; give it properties with [`Parameter::property`].
    pub fn object(description: impl Into<String>) -> Self {
        let mut object = Self {
            schema: object_schema(),
            required: false,
        };
        object
            .schema
            .insert("description".to_owned(), description.into().into());
        object
    }

    /// Adds or replaces a property of an object.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, property: Self) -> Self {
        property.add_to(&mut self.schema, name.into());
        self
    }

    /// Makes it required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The value that holds when the caller gives none.
    #[must_use]
    pub fn default_value(self, value: impl Into<Value>) -> Self {
        self.keyword("default", value)
    }

    /// The smallest number allowed.
    #[must_use]
    pub fn minimum(self, least: impl Into<Number>) -> Self {
        self.keyword("minimum", least.into())
    }

    /// The largest number allowed.
    #[must_use]
    pub fn maximum(self, most: impl Into<Number>) -> Self {
        self.keyword("maximum", most.into())
    }

    /// The shortest text allowed, in characters.
    #[must_use]
    pub fn min_length(self, characters: u32) -> Self {
        self.keyword("minLength", characters)
    }

    /// The longest text allowed, in characters.
    #[must_use]
    pub fn max_length(self, characters: u32) -> Self {
        self.keyword("maxLength", characters)
    }

    /// The regular expression (ECMA 262) that a text must match.
    #[must_use]
    pub fn pattern(self, expression: impl Into<String>) -> Self {
        self.keyword("pattern", expression.into())
    }

    /// What a text means, for example `uri`, `email` or `uuid`.
    #[must_use]
    pub fn format(self, format: impl Into<String>) -> Self {
        self.keyword("format", format.into())
    }

    /// Sets any keyword of the schema, for what has no setter of its own.
    #[must_use]
    pub fn keyword(mut self, keyword: impl Into<String>, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.into(), value.into());
        self
    }

    fn of_kind(kind: &str, description: impl Into<String>) -> Self {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), kind.into());
        schema.insert("description".to_owned(), description.into().into());
        Self {
            schema,
            required: false,
        }
    }

    /// Puts it under `properties` of an object schema, and under `required` or out of it.
    pub(super) fn add_to(self, object: &mut Map<String, Value>, name: String) {
        let mut others: Vec<Value> = match object.remove("required") {
            Some(Value::Array(names)) => names,
            _ => Vec::new(),
        };
        others.retain(|other| *other != *name);
        for other in others {
            append(object, "required", other);
        }
        if self.required {
            append(object, "required", name.as_str().into());
        }
        let properties = object
            .entry("properties")
            .or_insert_with(|| Map::new().into());
        if let Value::Object(properties) = properties {
            properties.insert(name, self.schema.into());
        }
    }
}

/// The schema of an object without properties.
pub(super) fn object_schema() -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Map::new().into());
    schema
}

/// Appends to the array at `key`, which is made when there is none; anything else at `key` is
/// replaced.
pub(super) fn append(object: &mut Map<String, Value>, key: &str, item: Value) {
    match object.get_mut(key) {
        Some(Value::Array(items)) => items.push(item),
        _ => {
            object.insert(key.to_owned(), vec![item].into());
        }
    }
}
