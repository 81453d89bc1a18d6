// What chapter.ts starts: goes through the history in a folder, and prints what came of the chapter as JSON.
import { readFolder } from '../history/history-folder.js';
import { History } from '../history/history.js';
import { type Judged, judgeChapter } from './judge-chapter.js';

const [folder, judged] = process.argv.slice(2) as [string, string];
console.log(JSON.stringify(judgeChapter(JSON.parse(judged) as Judged, new History(readFolder(folder)))));
