//! What the generated invocations in this folder expand to: one borrowed view per kind, and for live kinds one
//! owned form with its encoder.
//!
//! Every field names its Rust type and its place: required fields their offset in the payload, optional ones their
//! mask bit and their room on the wire. `or n => place` is the offset in the alternative layout that a payload of
//! exactly n bytes selects.

use super::wire::Wire;

/// The value at an offset of a payload; `None` when the record ends before it does.
#[inline(always)]
pub(super) fn read_at<T: Wire>(payload: &[u8], at: usize) -> Option<T> {
    T::read(payload.get(at..)?)
}

/// Writes a value at an offset that the generator computed for this very array.
#[inline(always)]
pub(super) fn put_at<T: Wire>(payload: &mut [u8], at: usize, value: T) {
    value.write(&mut payload[at..at + T::BYTES]);
}

/// An optional field as the registry describes it.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Bit in the mask byte.
    pub(super) mask: u8,
    /// Bytes on the wire.
    pub(super) bytes: usize,
    /// Bytes of the value at the start of them.
    pub(super) value_bytes: usize,
}

/// The value of the optional field with this bit; the mask byte is at `mask_at`.
///
/// A missing mask byte counts as 0; a field cut by the end of the record is absent (brief 01, B-18).
#[inline(always)]
pub(super) fn read_optional<T: Wire>(payload: &[u8], mask_at: usize, slots: &[Slot], bit: u8) -> Option<T> {
    let mask = *payload.get(mask_at)?;
    if mask & bit == 0 {
        return None;
    }
    let present = |slot: &&Slot| mask & slot.mask != 0;
    let start = mask_at + 1;
    // A padded field (kind 34) also occurs without its padding, recognised by the size it gives the record.
    let packed: usize = slots.iter().filter(present).map(|slot| slot.value_bytes).sum();
    let is_packed = payload.len() == start + packed;
    let room = |slot: &Slot| if is_packed { slot.value_bytes } else { slot.bytes };
    let before = slots.iter().take_while(|slot| slot.mask != bit).filter(present);
    let at = start + before.map(room).sum::<usize>();
    let slot = slots.iter().find(|slot| slot.mask == bit)?;
    T::read(payload.get(at..at + room(slot))?)
}

/// Writes an optional field to the start of `out`, zeroing what its room has beyond the value; returns the rest.
#[inline(always)]
pub(super) fn put_optional<T: Wire, const BYTES: usize>(out: &mut [u8], value: T) -> &mut [u8] {
    let (slot, rest) = out.split_at_mut(BYTES);
    let mut bytes = [0; BYTES];
    value.write(&mut bytes);
    slot.copy_from_slice(&bytes);
    rest
}

/// The borrowed view of a kind.
macro_rules! view {
    (
        $(#[$meta:meta])*
        $shape:ident $view:ident = $id:literal {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $at:literal $(or $size:literal => $alt:expr)?,)*
        }
        $(mask $mask_at:literal {
            $($(#[$opt_doc:meta])* $opt:ident: $opt_ty:ty = $mask:literal in $room:literal
                $(or $opt_size:literal => $opt_alt:expr)?,)*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $view<'a> {
            payload: &'a [u8],
        }

        impl<'a> $view<'a> {
            /// Id of the kind.
            pub const KIND: u8 = $id;

            /// The view of a record; `None` when it is of another kind or a span shorter than its header.
            #[inline]
            pub fn new(record: &crate::record::Record<'a>) -> Option<Self> {
                if record.kind() == Self::KIND { record.payload().map(Self::from_payload) } else { None }
            }

            /// The view of a payload that is known to be of this kind.
            #[inline]
            pub fn from_payload(payload: &'a [u8]) -> Self {
                Self { payload }
            }

            /// The payload as it is in the record.
            #[inline]
            pub fn raw(&self) -> &'a [u8] {
                self.payload
            }

            $(
                $(#[$doc])*
                #[inline]
                pub fn $field(&self) -> Option<$ty> {
                    $(if self.payload.len() == $size {
                        let alternative: Option<usize> = $alt;
                        return super::macros::read_at(self.payload, alternative?);
                    })?
                    super::macros::read_at(self.payload, $at)
                }
            )*
            $(
                /// The optional fields in wire order.
                #[allow(dead_code, reason = "a mask byte without optional fields is reserved")]
                const SLOTS: &'static [super::macros::Slot] = &[$(super::macros::Slot {
                    mask: $mask,
                    bytes: $room,
                    value_bytes: <$opt_ty as super::Wire>::BYTES,
                },)*];

                $(
                    $(#[$opt_doc])*
                    #[inline]
                    pub fn $opt(&self) -> Option<$opt_ty> {
                        $(if self.payload.len() == $opt_size {
                            let alternative: Option<usize> = $opt_alt;
                            return super::macros::read_at(self.payload, alternative?);
                        })?
                        super::macros::read_optional(self.payload, $mask_at, Self::SLOTS, $mask)
                    }
                )*
            )?
        }
    };
}

/// A live kind of fixed layout: its owned form, encoder and view. The number of bytes is that of the required
/// fields, padding and mask byte.
macro_rules! event {
    (
        $(#[$meta:meta])*
        $shape:ident $name:ident / $view:ident = $id:literal, $bytes:literal bytes {
            $($(#[$doc:meta])* $field:ident: $ty:ty = $at:literal $(or $size:literal => $alt:expr)?,)*
        }
        $(mask $mask_at:literal {
            $($(#[$opt_doc:meta])* $opt:ident: $opt_ty:ty = $mask:literal in $room:literal
                $(or $opt_size:literal => $opt_alt:expr)?,)*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: $ty,)*
            $($($(#[$opt_doc])* pub $opt: Option<$opt_ty>,)*)?
        }

        impl super::Event for $name {
            const KIND: u8 = $id;

            #[inline]
            fn payload_bytes(&self) -> usize {
                $bytes $($(+ if self.$opt.is_some() { $room } else { 0 })*)?
            }

            #[inline]
            #[allow(unused_mut, reason = "a kind may have no fields")]
            fn encode_payload(&self, out: &mut [u8]) -> Result<usize, super::BufferTooSmall> {
                let size = self.payload_bytes();
                let out = super::encode::exactly(out, size)?;
                let mut fixed = [0; $bytes];
                $(super::macros::put_at(&mut fixed, $at, self.$field);)*
                $(fixed[$mask_at] = 0 $(| if self.$opt.is_some() { $mask } else { 0 })*;)?
                let (start, rest) = out.split_at_mut(fixed.len());
                start.copy_from_slice(&fixed);
                $(
                    let mut rest = rest;
                    $(if let Some(value) = self.$opt {
                        rest = super::macros::put_optional::<_, $room>(rest, value);
                    })*
                )?
                debug_assert!(rest.is_empty(), "payload_bytes counts every field");
                Ok(size)
            }
        }

        impl $view<'_> {
            /// The owned form; `None` when the record is too short for a required field.
            pub fn to_event(&self) -> Option<$name> {
                Some($name {
                    $($field: self.$field()?,)*
                    $($($opt: self.$opt(),)*)?
                })
            }
        }

        event!(@shape $shape $name);

        view! {
            #[doc = concat!("Borrowed view of a [`", stringify!($name), "`] record.")]
            $shape $view = $id {
                $($(#[$doc])* $field: $ty = $at $(or $size => $alt)?,)*
            }
            $(mask $mask_at {
                $($(#[$opt_doc])* $opt: $opt_ty = $mask in $room $(or $opt_size => $opt_alt)?,)*
            })?
        }
    };
    (@shape instant $name:ident) => { impl super::InstantEvent for $name {} };
    (@shape span $name:ident) => { impl super::SpanEvent for $name {} };
}

/// A set of named numbers. Numbers without a name are kept as they are (brief 01, B-22).
macro_rules! named_values {
    ($(#[$meta:meta])* $name:ident($ty:ty) { $($constant:ident = $value:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $ty);

        impl $name {
            $(
                #[doc = concat!("`", $text, "`, ", $value, ".")]
                pub const $constant: Self = Self($value);
            )*

            /// Registry name of the number, if it has one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => self.0.fmt(f),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl super::Wire for $name {
            const BYTES: usize = size_of::<$ty>();

            #[inline(always)]
            fn read(bytes: &[u8]) -> Option<Self> {
                super::Wire::read(bytes).map(Self)
            }

            #[inline(always)]
            fn write(self, out: &mut [u8]) {
                super::Wire::write(self.0, out);
            }
        }
    };
}

/// A set of named bits. Unknown bits are kept as they are.
macro_rules! named_bits {
    ($(#[$meta:meta])* $name:ident($ty:ty) { $($constant:ident = $value:literal $text:literal,)* }) => {
        named_values! { $(#[$meta])* $name($ty) { $($constant = $value $text,)* } }

        impl $name {
            /// Are all bits of `bits` set?
            pub const fn contains(self, bits: Self) -> bool {
                self.0 & bits.0 == bits.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

/// The enum over all views.
macro_rules! event_view {
    ($($id:literal $name:ident($view:ident),)*) => {
        /// The typed view of a record of any kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EventView<'a> {
            $(
                #[doc = concat!("Kind ", $id, ".")]
                $name($view<'a>),
            )*
        }

        impl<'a> EventView<'a> {
            /// The view that belongs to the kind of a record; `None` for unknown kinds and for spans shorter than
            /// their header.
            #[inline]
            pub fn new(record: &crate::record::Record<'a>) -> Option<Self> {
                let payload = record.payload()?;
                Some(match record.kind() {
                    $($id => Self::$name($view::from_payload(payload)),)*
                    _ => return None,
                })
            }
        }
    };
}
