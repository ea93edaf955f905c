//! The test kit: what real-process tests and the simulator share.
