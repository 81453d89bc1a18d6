// In one file, because Jest loads Nest and the package for each file.
import './health.js';
import './shop.js';
import './testing.js';
