const TYPES = ['build', 'chore', 'ci', 'docs', 'feat', 'fix', 'perf', 'refactor', 'revert', 'style', 'test'];
const LONGEST_SUBJECT = 72;
const SUBJECT = /^(?<type>[a-z]+)(?:\((?<scope>[^()]*)\))?!?: (?<text>\S.*)$/;
const SCOPE = /^[a-z0-9-]+(?:, ?[a-z0-9-]+)*$/;
/** `Signed-off-by: A. Name <a@name.org>`: metadata, which is no reason for a change. */
const TRAILER = /^[A-Za-z][A-Za-z-]*: \S/;

/**
 * @param {string} message a whole commit message
 * @returns {string[]} what is wrong with it, a sentence each
 */
export function problemsOf(message) {
  const [subject, ...rest] = message.trimEnd().split('\n');
  const problems = subjectProblems(subject);
  if (rest.length > 0 && rest[0] !== '') problems.push('The second line is not empty.');
  if (!hasBody(rest)) problems.push('There is no body. It says why the change is made.');
  return problems;
}

function subjectProblems(subject) {
  const problems = [];
  if (subject.length > LONGEST_SUBJECT) {
    problems.push(`The subject has ${subject.length} characters, ${LONGEST_SUBJECT} at most.`);
  }
  const { type, scope, text } = SUBJECT.exec(subject)?.groups ?? {};
  if (text === undefined) return [...problems, 'The subject is not of the form "type(scope): what changes".'];
  if (!TYPES.includes(type)) problems.push(`"${type}" is no type. The types are ${TYPES.join(', ')}.`);
  if (scope !== undefined && !SCOPE.test(scope)) problems.push(`"${scope}" is no scope: use lower-case words.`);
  if (text.endsWith('.')) problems.push('The subject ends with a full stop.');
  return problems;
}

function hasBody(lines) {
  const paragraphs = lines
    .join('\n')
    .trim()
    .split(/\n\s*\n/);
  return paragraphs.some((text) => text !== '' && !text.split('\n').every((line) => TRAILER.test(line)));
}
