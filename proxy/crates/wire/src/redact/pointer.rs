//! JSON pointers of the configuration: values that are replaced by their place.
//!
//! RFC 6901, with `*` as a step for any member or element. A pointer also leads through a string that holds JSON, and one
//! into `structuredContent` also holds for the text blocks that repeat it, as servers are asked to do.

use super::RuleError;

/// All pointers, compiled.
#[derive(Debug, Default)]
pub(super) struct Pointers(Vec<Pointer>);

#[derive(Debug)]
struct Pointer {
    /// None: every tool.
    tool: Option<String>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Any,
    Name(String),
}

/// A pointer some of whose steps are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pointer: usize,
    taken: usize,
}

/// Where a value stands in its container.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Member(&'a [u8]),
    Element(u32),
}

impl Pointers {
    pub(super) fn new(rules: &[(String, String)]) -> Result<Self, RuleError> {
        let mut all = Vec::with_capacity(rules.len());
        for (tool, text) in rules {
            let wrong = |problem| RuleError::Pointer {
                tool: tool.clone(),
                found: text.clone(),
                problem,
            };
            if tool.is_empty() {
                return Err(wrong("its tool has no name; write `*` for all tools"));
            }
            let steps = steps(text).map_err(wrong)?;
            let tool = (tool != "*").then(|| tool.clone());
            if steps.first() == Some(&Step::Name("structuredContent".to_owned())) {
                let text_block = ["content", "*", "text"].map(step);
                all.push(Pointer {
                    tool: tool.clone(),
                    steps: text_block
                        .into_iter()
                        .chain(steps.iter().skip(1).cloned())
                        .collect(),
                });
            }
            all.push(Pointer { tool, steps });
        }
        Ok(Self(all))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pointers for one tool, no step taken.
    pub(super) fn of_tool(&self, name: &str) -> Vec<Active> {
        let matches = |pointer: &Pointer| pointer.tool.as_deref().is_none_or(|tool| tool == name);
        self.0
            .iter()
            .enumerate()
            .filter(|(_, pointer)| matches(pointer))
            .map(|(pointer, _)| Active { pointer, taken: 0 })
            .collect()
    }

    /// Whether one of them has arrived.
    pub(super) fn arrived(&self, active: &[Active]) -> bool {
        active.iter().any(|active| {
            self.0
                .get(active.pointer)
                .is_some_and(|pointer| pointer.steps.len() == active.taken)
        })
    }

    /// Pushes those of `stack[from..]` that lead on to `place`.
    pub(super) fn descend(&self, stack: &mut Vec<Active>, from: usize, place: Place<'_>) {
        for i in from..stack.len() {
            let Some(&Active { pointer, taken }) = stack.get(i) else {
                return;
            };
            let step = self
                .0
                .get(pointer)
                .and_then(|pointer| pointer.steps.get(taken));
            if step.is_some_and(|step| step.leads_to(place)) {
                stack.push(Active {
                    pointer,
                    taken: taken + 1,
                });
            }
        }
    }
}

impl Step {
    fn leads_to(&self, place: Place<'_>) -> bool {
        match (self, place) {
            (Self::Any, _) => true,
            (Self::Name(name), Place::Member(key)) => name.as_bytes() == key,
            (Self::Name(name), Place::Element(index)) => name.parse() == Ok(index),
        }
    }
}

fn steps(text: &str) -> Result<Vec<Step>, &'static str> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let tail = text
        .strip_prefix('/')
        .ok_or("it must be empty or begin with `/`")?;
    tail.split('/')
        .map(|raw| {
            let escapes = raw.matches('~').count();
            if escapes != raw.matches("~0").count() + raw.matches("~1").count() {
                return Err("`~` must be written `~0`, and `/` inside a name `~1`");
            }
            Ok(step(raw))
        })
        .collect()
}

fn step(raw: &str) -> Step {
    if raw == "*" {
        Step::Any
    } else {
        Step::Name(raw.replace("~1", "/").replace("~0", "~"))
    }
}
