def normalised(model, pictures):
    """Those that can be normalised."""
    done = []
    for picture in pictures:
        try:
            row = model(picture)
        except ArithmeticError:
            continue
        done.append(row)
    return done
