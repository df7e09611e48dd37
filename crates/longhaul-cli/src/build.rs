//! What this binary is: version, commit, target, and what is in it.

/// What `longhaul --version` says: the version, what it was built of and for, and what it can do.
pub fn described() -> String {
    let target = env!("BUILT_FOR");
    let linked = if cfg!(target_feature = "crt-static") { ", static" } else { "" };
    let optimised = if cfg!(debug_assertions) { ", debug" } else { "" };
    let mut features = vec!["gateway", "agent", "sqlite", "postgres", "tls"];
    if cfg!(target_os = "linux") {
        features.push("confinement");
    }
    format!(
        "{}\nbuild: {}; {target}{linked}{optimised}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        env!("BUILT_FROM"),
        features.join(" "),
    )
}
