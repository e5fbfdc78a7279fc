let x = }
`${`${