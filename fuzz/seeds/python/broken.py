def run(inputs:
	if 1:
  else f"{f'{1}'}"