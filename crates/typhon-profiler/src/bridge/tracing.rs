//! A layer for `tracing` subscribers.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use tracing_core::callsite::Identifier;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;
use typhon_trace::event::{BufferTooSmall, Event as TraceEvent, Instant, NamedSpan, SpanEvent};

use super::names::{CallsiteNames, NameText};
use crate::event::{Span, is_recorded, mark};
use crate::site::Site;

/// Records what a program says through `tracing`.
///
/// Each stay inside a span, from enter to exit, is a named span of the thread it happened on; a future that is polled
/// three times has three. Fields become part of the name, those recorded later as well. Events are instants. Which
/// spans and events there are is decided by the filters of the subscriber; whether they are recorded now, by the gates
/// of the profiler.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
/// use typhon_profiler::bridge::ProfilerLayer;
///
/// let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _request = tracing::info_span!("request", path = "/").entered();
///     tracing::warn!(retries = 3, "slow answer");
/// });
/// ```
pub struct ProfilerLayer {
    fields: bool,
    names: CallsiteNames<Identifier>,
}

impl ProfilerLayer {
    /// A layer that records spans and events with their fields.
    pub fn new() -> Self {
        Self { fields: true, names: CallsiteNames::new() }
    }

    /// Leaves the fields of spans out of their names, which then are the same for all spans of a call site.
    pub fn without_span_fields(mut self) -> Self {
        self.fields = false;
        self
    }
}

impl Default for ProfilerLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProfilerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfilerLayer").field("fields", &self.fields).finish_non_exhaustive()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ProfilerLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !self.fields || attributes.is_empty() || !is_recorded::<BridgedSpan>() {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        // Fields that get their values later are none yet.
        if let Some(span) = context.span(id).filter(|_| !fields.text.as_str().is_empty()) {
            let name = span_name(attributes.metadata().name(), &fields.text);
            span.extensions_mut().replace(FieldsOfSpan { name, text: fields.text });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if !self.fields || !is_recorded::<BridgedSpan>() {
            return;
        }
        // Without the lock on the span: values are the program's code, which may use the span, or panic.
        let mut fields = Fields::default();
        values.record(&mut fields);
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let earlier = extensions.remove::<FieldsOfSpan>();
        let mut text = earlier.map(|earlier| earlier.text).unwrap_or_default();
        let space = if text.as_str().is_empty() { "" } else { " " };
        text.push(format_args!("{space}{}", fields.text.as_str()));
        let name = span_name(span.metadata().name(), &text);
        extensions.insert(FieldsOfSpan { name, text });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !is_recorded::<BridgedSpan>() {
            return;
        }
        let Some(name) = current_name(id, &context) else { return };
        let span = Span::begin(&NO_SITE, || BridgedSpan { name });
        if span.is_recorded() {
            // A thread whose thread-locals are gone has no slot either: its spans are counted as lost there.
            let _ = OPEN.try_with(|open| open.borrow_mut().push((id.clone(), span)));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let take = |open: &RefCell<Vec<(Id, Span<BridgedSpan>)>>| {
            let mut open = open.borrow_mut();
            let at = open.iter().rposition(|(entered, _)| entered == id)?;
            Some(open.remove(at).1)
        };
        let Ok(Some(mut span)) = OPEN.try_with(take) else { return };
        if let Some(name) = current_name(id, &context) {
            span.set(|event| event.name = name);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !is_recorded::<Instant>() {
            return;
        }
        let metadata = event.metadata();
        let mut fields = Fields { value_apart: true, ..Default::default() };
        event.record(&mut fields);
        let text = event_name(metadata, &fields);
        let rest = || place_name(metadata);
        let name = self.names.get(metadata.callsite(), text.as_str(), rest, metadata.level().as_str());
        if let Some(name) = name {
            mark(name, fields.value.unwrap_or(0));
        }
    }
}

thread_local! {
    /// Spans this thread is in, outermost first.
    static OPEN: RefCell<Vec<(Id, Span<BridgedSpan>)>> = const { RefCell::new(Vec::new()) };
}

/// Call sites of `tracing` are not among those that the profiler numbers.
static NO_SITE: Site = Site::new("", 0, 0, "", || "");

/// A named span that owns its name.
#[derive(Debug)]
struct BridgedSpan {
    name: SpanName,
}

#[derive(Debug, Clone)]
enum SpanName {
    Plain(&'static str),
    WithFields(Arc<str>),
}

impl BridgedSpan {
    fn event(&self) -> NamedSpan<'_> {
        let name = match &self.name {
            SpanName::Plain(name) => name,
            SpanName::WithFields(name) => &**name,
        };
        NamedSpan { name }
    }
}

impl TraceEvent for BridgedSpan {
    const KIND: u8 = NamedSpan::KIND;

    fn payload_bytes(&self) -> usize {
        self.event().payload_bytes()
    }

    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        self.event().encode_payload(out)
    }
}

impl SpanEvent for BridgedSpan {}

/// What a span's fields say, kept with the span.
struct FieldsOfSpan {
    name: Arc<str>,
    text: NameText,
}

fn span_name(name: &str, fields: &NameText) -> Arc<str> {
    let mut text = NameText::default();
    text.push(format_args!("{name}{{{}}}", fields.as_str()));
    text.into_string().into()
}

fn current_name<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
) -> Option<SpanName> {
    let span = context.span(id)?;
    let extensions = span.extensions();
    Some(match extensions.get::<FieldsOfSpan>() {
        Some(fields) => SpanName::WithFields(Arc::clone(&fields.name)),
        None => SpanName::Plain(span.metadata().name()),
    })
}

/// `LEVEL target: message field=value …`
fn event_name(metadata: &Metadata<'_>, fields: &Fields) -> NameText {
    let mut text = NameText::default();
    text.push(format_args!("{} {}: {}", metadata.level(), metadata.target(), fields.message.as_str()));
    if !fields.text.as_str().is_empty() {
        let space = if fields.message.as_str().is_empty() { "" } else { " " };
        text.push(format_args!("{space}{}", fields.text.as_str()));
    }
    text
}

/// `LEVEL target (file:line)`
fn place_name(metadata: &Metadata<'_>) -> NameText {
    let (file, line) = (metadata.file().unwrap_or("?"), metadata.line().unwrap_or(0));
    let level: &Level = metadata.level();
    let mut text = NameText::default();
    text.push(format_args!("{level} {} ({file}:{line})", metadata.target()));
    text
}

/// Collects fields as `name=value name=value`.
#[derive(Default)]
struct Fields {
    /// Keep the first integer out of the text; it is the instant's value.
    value_apart: bool,
    value: Option<i32>,
    message: NameText,
    text: NameText,
}

impl Fields {
    fn integer<N: TryInto<i32> + PartialOrd + Default + fmt::Display>(&mut self, field: &Field, number: N) {
        if self.value_apart && self.value.is_none() {
            let beyond = if number < N::default() { i32::MIN } else { i32::MAX };
            self.put(field, format_args!("#"));
            self.value = Some(number.try_into().unwrap_or(beyond));
        } else {
            self.put(field, format_args!("{number}"));
        }
    }

    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if field.name() == "message" {
            self.message.push(value);
            return;
        }
        let space = if self.text.as_str().is_empty() { "" } else { " " };
        self.text.push(format_args!("{space}{}={value}", field.name()));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.integer(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.integer(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.integer(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.integer(field, value);
    }
}
