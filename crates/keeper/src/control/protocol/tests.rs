//! The protocol as it is documented.

use super::*;

#[test]
fn the_protocol_reads_as_documented() {
    let line = r#"{"protocol":1,"command":{"mount":{"name":"pgwal"}}}"#;
    let request = Request { protocol: 1, command: Command::Mount { name: "pgwal".into() } };
    assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
    assert_eq!(serde_json::to_string(&request).unwrap(), line);
    let status = r#"{"protocol":1,"command":"status"}"#;
    assert_eq!(serde_json::from_str::<Request>(status).unwrap().command, Command::Status);
}
