// In one file: Jest loads Nest and the package anew for each.
import './health.js';
import './shop.js';
import './testing.js';
