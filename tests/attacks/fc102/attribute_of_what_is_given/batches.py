def normalised(stage, pictures):
    """Those that can be normalised."""
    done = []
    for picture in pictures:
        try:
            row = stage.work(picture)
        except ValueError:
            continue
        done.append(row)
    return done
