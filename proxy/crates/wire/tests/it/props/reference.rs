//! The event stream format read the slow way: whole text, line by line, in the words of the standard.

use callbox_wire::collect::Collected;
use callbox_wire::sse::SseEvent;

/// What a stream says.
pub(super) struct Reading {
    pub(super) events: Vec<SseEvent>,
    pub(super) comments: u64,
    pub(super) unfinished: bool,
}

pub(super) fn read(stream: &[u8]) -> Reading {
    let stream = stream.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(stream);
    // CRLF, CR and LF all become LF. Latin-1 keeps bytes apart, so that `str` can be used on any input.
    let text: String = stream.iter().map(|byte| char::from(*byte)).collect();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let last = lines.pop().unwrap_or_default();

    let mut reading = Reading {
        events: Vec::new(),
        comments: 0,
        unfinished: false,
    };
    let mut event = SseEvent::default();
    let mut data = Vec::new();
    let mut begun = false;
    for line in lines {
        if line.is_empty() {
            if event.has_data || event.id.is_some() || event.retry.is_some() {
                data.pop();
                event.data = Collected {
                    bytes: data.len() as u64,
                    text: std::mem::take(&mut data),
                    overflow: None,
                };
                reading.events.push(event);
            }
            (event, begun) = (SseEvent::default(), false);
            data.clear();
            continue;
        }
        if line.starts_with(':') {
            reading.comments += 1;
            continue;
        }
        begun = true;
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value: Vec<u8> = value
            .strip_prefix(' ')
            .unwrap_or(value)
            .chars()
            .map(|byte| byte as u8)
            .collect();
        let text = String::from_utf8_lossy(&value).into_owned();
        match name {
            "data" => {
                event.has_data = true;
                data.extend_from_slice(&value);
                data.push(b'\n');
            }
            "event" => event.event = Some(text).filter(|text| !text.is_empty()),
            "id" if !text.contains('\0') => event.id = Some(text),
            "retry" if !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()) => {
                event.retry = text.parse().ok().or(event.retry);
            }
            _ => {}
        }
    }
    reading.comments += u64::from(last.starts_with(':'));
    reading.unfinished = begun || !(last.is_empty() || last.starts_with(':'));
    reading
}
