//! Every key as one tree: name, form, default, words. Made from the schema; checking, environment, `show` and the
//! reference all walk it.

use std::sync::LazyLock;

use serde_json::Value;

use crate::schema::{self, object};

/// The whole configuration.
pub(crate) static ROOT: LazyLock<Key> =
    LazyLock::new(|| Key::from_schema("", &schema::ANNOTATED, false));

/// One key: a section or a setting.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// The words for operators.
    pub(crate) doc: String,
    /// Value without which nobody has to write it.
    pub(crate) default: Option<toml::Value>,
    /// A value to show where there is no default.
    pub(crate) example: Option<toml::Value>,
    /// Has to be written.
    pub(crate) required: bool,
    /// SIGHUP cannot change it.
    pub(crate) restart: bool,
    /// The flag that sets it.
    pub(crate) flag: Option<String>,
}

/// What a key holds.
#[derive(Debug)]
pub(crate) enum Form {
    Text(Text),
    Choice(Vec<Choice>),
    Whole { min: i64, max: i64 },
    Switch,
    List(Box<Key>),
    Table(Table),
}

/// What a text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Plain,
    Address,
    Path,
    Duration,
    Size,
}

/// One of a closed set of values.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) doc: String,
}

/// Keys below a key, in the order of the raw type.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) keys: Vec<Key>,
    /// Exactly one of the keys is written, on one line; a later source replaces it.
    pub(crate) one_of: bool,
    /// What stands in the place of this table may be a secret.
    pub(crate) secret: bool,
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    /// The keys below, if it is a table or a list of tables.
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.form {
            Form::Table(table) => Some(table),
            Form::List(item) => match &item.form {
                Form::Table(table) => Some(table),
                _ => None,
            },
            _ => None,
        }
    }

    /// Written under a heading of its own: `[listen]`, `[[upstream]]`.
    pub(crate) fn is_section(&self) -> bool {
        match &self.form {
            Form::Table(table) => !table.one_of,
            // The only list of sections; others are short enough for one line.
            Form::List(_) => self.name == "upstream",
            _ => false,
        }
    }

    /// Calls `visit` for every key below this one with its path; what is below a list of sections counts once, what is
    /// inside other lists does not count.
    pub(crate) fn each<'a>(&'a self, path: &str, visit: &mut dyn FnMut(&str, &'a Key)) {
        for key in self
            .table()
            .map(|table| table.keys.as_slice())
            .unwrap_or_default()
        {
            let path = join(path, &key.name);
            visit(&path, key);
            if key.is_section() || matches!(key.form, Form::Table(_)) {
                key.each(&path, visit);
            }
        }
    }

    fn from_schema(name: &str, schema: &Value, required: bool) -> Self {
        let text = |member: &str| schema[member].as_str().map(str::to_owned);
        let value = |json: &Value| toml::Value::try_from(json).ok();
        Self {
            name: name.to_owned(),
            form: form(schema),
            doc: text("description").unwrap_or_default(),
            default: schema.get("default").and_then(value),
            example: schema["examples"].get(0).and_then(value),
            required,
            restart: schema["x-restart"] == true,
            flag: text("x-flag"),
        }
    }
}

/// `listen` and `address` make `listen.address`.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn form(schema: &Value) -> Form {
    let choices = choices(schema);
    if !choices.is_empty() {
        return Form::Choice(choices);
    }
    match schema["type"].as_str() {
        Some("object") => Form::Table(table(schema)),
        Some("array") => Form::List(Box::new(Key::from_schema("", &schema["items"], false))),
        Some("boolean") => Form::Switch,
        Some("integer") => Form::Whole {
            min: schema["minimum"].as_i64().unwrap_or(i64::MIN),
            max: schema["maximum"].as_i64().unwrap_or(i64::MAX),
        },
        _ => Form::Text(match schema["x-form"].as_str() {
            Some("address") => Text::Address,
            Some("path") => Text::Path,
            Some("duration") => Text::Duration,
            Some("size") => Text::Size,
            _ => Text::Plain,
        }),
    }
}

fn table(schema: &Value) -> Table {
    let properties = object(schema, "properties");
    let names = |member: &str| {
        schema[member]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    let keys = names("x-order")
        .filter_map(|name| {
            let required = names("required").any(|required| required == name);
            Some(Key::from_schema(name, properties.get(name)?, required))
        })
        .collect();
    Table {
        keys,
        one_of: schema["maxProperties"] == 1,
        secret: schema["x-secret"] == true,
    }
}

fn choices(schema: &Value) -> Vec<Choice> {
    schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|choice| {
            Some(Choice {
                value: choice["const"].as_str()?.to_owned(),
                doc: choice["description"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key of the raw types is in the tree: the order probe, the schema and serde agree.
    #[test]
    fn the_tree_is_complete_and_documented() {
        fn properties(schema: &Value) -> usize {
            let own = object(schema, "properties");
            let below = own.values().map(properties).sum::<usize>();
            let servers = own
                .get("upstream")
                .map_or(0, |list| properties(&list["items"]));
            own.len() + below + servers
        }
        let mut count = 0;
        ROOT.each("", &mut |path, key| {
            count += 1;
            assert!(
                !key.doc.is_empty() || key.is_section(),
                "{path} has no words"
            );
            assert!(
                key.default.is_some() || key.example.is_some() || key.table().is_some(),
                "{path} has neither default nor example"
            );
        });
        assert_eq!(count, properties(&schema::ANNOTATED));
        assert!(count > 60, "{count}");
    }
}
