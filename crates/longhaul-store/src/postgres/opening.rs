//! Opening: whose schema it is, which form it has, and how it is brought to the newest one. Nothing is
//! written before it is known that the schema is ours.

use super::pool::Connection;
use crate::error::StoreError;
use crate::fault::Fault;

/// The steps from each form to the next; a new schema goes through all of them. A step that was released
/// never changes.
const STEPS: [&str; 7] = [
    include_str!("1.sql"),
    include_str!("2.sql"),
    include_str!("3.sql"),
    include_str!("4.sql"),
    include_str!("5.sql"),
    include_str!("6.sql"),
    include_str!("7.sql"),
];

/// The newest form: the number of steps.
const FORM: i64 = STEPS.len() as i64;

/// Who brings the schema up holds this lock of the database: `LHsn`.
const LOCK: i64 = 0x4C48_736E;

/// What is in the database: its encoding, whether the schema is there, how many relations it has, and
/// whether one of them is a table of forms.
const WHAT_IS_THERE: &str = "
    SELECT current_setting('server_encoding'), count(DISTINCT s.oid) > 0, count(c.oid),
        count(*) FILTER (WHERE c.relname = 'form' AND (SELECT count(*) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname IN ('program', 'form')) = 2) > 0
    FROM pg_namespace s LEFT JOIN pg_class c ON c.relnamespace = s.oid WHERE s.nspname = 'longhaul'";

/// Makes what is missing. Others may do the same at this moment.
pub(super) async fn open(connection: &mut Connection, place: &str) -> Result<(), Fault> {
    match form_of(connection, place).await? {
        Found::Form(FORM) => Ok(()),
        _ => bring_up(connection, place).await,
    }
}

/// What is found of a store.
enum Found {
    /// Nothing, not even a schema.
    Nothing,
    /// A schema with nothing in it: somebody made it for us.
    EmptySchema,
    /// Tables of this form.
    Form(i64),
}

async fn form_of(connection: &mut Connection, place: &str) -> Result<Found, Fault> {
    let foreign = || Fault::Store(StoreError::Foreign { place: place.to_owned() });
    let row = connection.client.query_one(WHAT_IS_THERE, &[]).await?;
    let encoding: String = row.try_get(0)?;
    if encoding != "UTF8" {
        let problem = format!("a database with the encoding UTF8 is needed, not {encoding}");
        return Err(Fault::Unavailable(problem));
    }
    match (row.try_get(1)?, row.try_get::<_, i64>(2)?, row.try_get(3)?) {
        (false, ..) => return Ok(Found::Nothing),
        (true, 0, _) => return Ok(Found::EmptySchema),
        (true, _, false) => return Err(foreign()),
        (true, _, true) => {}
    }
    let sql = "SELECT form::bigint FROM longhaul.form WHERE program = 'longhaul'";
    let row = connection.client.query_opt(sql, &[]).await?;
    let form = row.ok_or_else(foreign)?.try_get(0)?;
    if form > FORM {
        return Err(StoreError::Newer { place: place.to_owned(), found: form, known: FORM }.into());
    }
    Ok(Found::Form(form))
}

/// Makes what is missing, in one transaction.
async fn bring_up(connection: &mut Connection, place: &str) -> Result<(), Fault> {
    let lock = format!("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({LOCK})");
    connection.client.batch_execute(&lock).await?;
    let form = match form_of(connection, place).await? {
        Found::Nothing => {
            connection.client.batch_execute("CREATE SCHEMA longhaul").await?;
            0
        }
        Found::EmptySchema => 0,
        Found::Form(form) => form,
    };
    for step in STEPS.iter().skip(usize::try_from(form).unwrap_or(0)) {
        connection.client.batch_execute(step).await?;
    }
    let end = format!("UPDATE longhaul.form SET form = {FORM}; COMMIT");
    connection.client.batch_execute(&end).await?;
    Ok(())
}
