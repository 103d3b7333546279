//! The secret of one run: who knows it may ask (brief 11 F-3).

use std::fmt;

const BYTES: usize = 32;

/// 256 random bits, shown as 64 hexadecimal digits.
#[derive(Clone)]
pub(crate) struct Token([u8; BYTES]);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random numbers to give.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// As text, for an address.
    pub(crate) fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Is this text the token? The time it takes does not depend on where it differs.
    pub(crate) fn is(&self, text: &str) -> bool {
        let expected = self.to_text();
        // The length is no secret.
        expected.len() == text.len()
            && expected.bytes().zip(text.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// Never shows the secret, wherever it ends up in a message.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_text_is_the_token() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        let text = token.to_text();
        assert_eq!(text.len(), 64);
        assert!(token.is(&text));
        assert!(!token.is(&other.to_text()) && !token.is("") && !token.is(&text[1..]));
        assert!(
            !token.is(&format!("{text} ")) && !token.is(&text.to_uppercase().replace(char::is_numeric, "0"))
        );
        for at in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] ^= 1;
            assert!(!token.is(std::str::from_utf8(&wrong).unwrap()), "digit {at}");
        }
    }

    #[test]
    fn debugging_does_not_show_it() {
        let token = Token::random().unwrap();
        assert!(!format!("{token:?}").contains(&token.to_text()[..8]));
    }
}
