//! When two JSON values are the same to a schema: numbers by their value, objects whatever the order of their keys.

use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// A text that two values share exactly when they are equal.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Number(number) => {
            let (digits, exponent) = decimal(number);
            // Writing to a text does not fail.
            let _written = write!(out, "{digits}e{exponent}");
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, field) in fields {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(field, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// `number` as digits and a power of ten, in its one shortest form.
fn decimal(number: &Number) -> (i128, i32) {
    let text = number.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // A double's shortest text has at most 17 digits and an integer's at most 20, so both fit.
    let mut digits: i128 = format!("{whole}{fraction}").parse().unwrap_or(0);
    let mut exponent =
        exponent.parse().unwrap_or(0i32).saturating_sub(i32::try_from(fraction.len()).unwrap_or(0));
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    if digits == 0 { (0, 0) } else { (digits, exponent) }
}

/// Both as whole numbers of one power of ten, where they fit.
fn aligned(one: &Number, other: &Number) -> Option<(i128, i128)> {
    let ((a, a_exponent), (b, b_exponent)) = (decimal(one), decimal(other));
    let least = a_exponent.min(b_exponent);
    let scale = |digits: i128, exponent: i32| {
        let power = u32::try_from(exponent.checked_sub(least)?).ok()?;
        digits.checked_mul(10i128.checked_pow(power)?)
    };
    Some((scale(a, a_exponent)?, scale(b, b_exponent)?))
}

pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    if let Some((a, b)) = aligned(one, other) {
        return a.cmp(&b);
    }
    let double = |number: &Number| number.as_f64().unwrap_or(0.0);
    double(one).total_cmp(&double(other))
}

/// Whether `number` is a whole multiple of `step`, which is positive.
pub(super) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let Some((a, b)) = aligned(number, step) {
        return b != 0 && a % b == 0;
    }
    // So far apart that the smaller does not count beside the larger.
    match (number.as_f64(), step.as_f64()) {
        (Some(a), Some(b)) => a.abs() >= b && (a / b).fract() == 0.0,
        (None, _) | (_, None) => false,
    }
}

/// Whether it has no fraction: `1.0` is an integer to a schema.
pub(super) fn is_whole(number: &Number) -> bool {
    decimal(number).1 >= 0
}
