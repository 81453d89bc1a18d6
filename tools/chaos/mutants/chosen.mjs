/**
 * The mutants that `MUTANTS` names, or all. `.ci/run` names those that a change is like.
 *
 * @template {{ readonly name: string }} M
 * @param {readonly M[]} mutants
 * @returns {readonly M[]}
 */
export function chosen(mutants) {
  const names = process.env['MUTANTS']?.split(',');
  return names === undefined ? mutants : mutants.filter(({ name }) => names.includes(name));
}
