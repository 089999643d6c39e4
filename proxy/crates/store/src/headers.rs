//! The header lines of one head, in two allocations: a call has a few dozen lines, and each is written once.

use std::fmt;

/// Names and values in order, as they were; values redacted where they are credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: String,
    /// Where each name and each value ends, in turn.
    ends: Vec<u32>,
}

impl Headers {
    /// Room for so many bytes and lines.
    pub fn with_capacity(bytes: usize, lines: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(2 * lines),
        }
    }

    /// Adds a line. Past 4 GiB nothing is added.
    pub fn push(&mut self, name: &str, value: &str) {
        let name_end = u32::try_from(self.text.len() + name.len());
        let value_end = u32::try_from(self.text.len() + name.len() + value.len());
        if let (Ok(name_end), Ok(value_end)) = (name_end, value_end) {
            self.text.push_str(name);
            self.text.push_str(value);
            self.ends.extend([name_end, value_end]);
        }
    }

    /// The lines in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut from = 0;
        let mut part = move |end: u32| {
            let range = std::mem::replace(&mut from, end as usize)..end as usize;
            self.text.get(range).unwrap_or_default()
        };
        self.ends
            .chunks_exact(2)
            .map(move |ends| (part(ends[0]), part(ends[1])))
    }

    /// The value of the first line with this name, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(line, _)| line.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// How many lines.
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of names and values.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in lines {
            headers.push(name.as_ref(), value.as_ref());
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_apart_whatever_is_in_them() {
        let lines = [("a", "1"), ("", ""), ("b:\n", "é\n: "), ("a", "2")];
        let headers: Headers = lines.into_iter().collect();
        assert!(headers.iter().eq(lines));
        assert_eq!((headers.len(), headers.bytes()), (4, 12));
        assert_eq!((headers.get("A"), headers.get("c")), (Some("1"), None));
        assert!(Headers::default().is_empty());
    }
}
