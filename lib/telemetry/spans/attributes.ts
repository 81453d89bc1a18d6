import type { TracedLock } from '../../core/events/lock-tracer.js';
import { escapeText } from '../../core/util/quoted.js';
import { LockAttribute } from '../names.js';
import { LockSpanAttribute } from './names.js';

/** What every span says of its lock. */
export function attributesOf({ service, resource, mode, group }: TracedLock): Record<string, string> {
  return {
    [LockAttribute.Service]: escapeText(service),
    [LockAttribute.Group]: group,
    [LockAttribute.Mode]: mode,
    [LockSpanAttribute.Resource]: escapeText(resource),
  };
}
