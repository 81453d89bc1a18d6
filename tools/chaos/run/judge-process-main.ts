// The program that chapter.ts starts: judges the history in a folder, and prints the result as JSON.
import { readFolder } from '../history/history-folder.js';
import { History } from '../history/history.js';
import { type Judged, judgeChapter } from './judge-chapter.js';

const [folder, judged] = process.argv.slice(2) as [string, string];
console.log(JSON.stringify(judgeChapter(JSON.parse(judged) as Judged, new History(readFolder(folder)))));
