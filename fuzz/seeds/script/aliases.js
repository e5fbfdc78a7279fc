const w = window; const k = "ev" + "al";
w[k]("1"); (function(){}).constructor("return 1")();