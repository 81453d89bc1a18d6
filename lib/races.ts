/**
 * Finds the race in code that uses locks: runs it in every order that can differ. For tests, in any test runner.
 *
 * @module nestjs-redis-lock/races
 */

export { exploreRaces } from './extras/races/explore-races.js';
export type { ExploreRacesResult } from './extras/races/exploration.js';
export type { ExploreRacesOptions } from './extras/races/explore-options.js';
export { RaceFoundError, RaceToolError } from './extras/races/schedule/race-errors.js';
export type { RaceKit } from './extras/races/locks/race-kit.js';
export { raced, racePoint } from './extras/races/raced.js';
