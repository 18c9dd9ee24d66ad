"""A stand-in for what trialscan.py needs of pyarrow: tables whose columns are lists. Only apache-arrow reads the bytes (ipc.py)."""


class types:
    is_dictionary = staticmethod(lambda type: type == "dictionary")


class Column:
    def __init__(self, type, values):
        self.type, self.values, self.null_count = type, values, values.count(None)

    def __len__(self):
        return len(self.values)

    def to_pylist(self):
        return self.values

    def cast(self, type):
        return Column(type, self.values)


class Table:
    def __init__(self, columns):
        self.named, self.column_names, self.columns = columns, list(columns), list(columns.values())

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, name):
        return self.named[name]


table = Table
