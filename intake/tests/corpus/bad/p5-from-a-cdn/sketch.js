let level;
function preload() { level = loadJSON("level1.json"); }
function setup() { createCanvas(400, 400); }
function draw() { background(220); circle(mouseX, mouseY, 20); }
