# cython: language_level=3
"""Open several local files and read the end of each, in one call that releases the GIL."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

cdef extern from * nogil:
    """
    #if defined(_WIN32)
    #define PQEXT_OPENS_FILES 0
    static int pqext_open(const char *path, int64_t *stamp) { return -1; }
    static int pqext_stamp(int number, int64_t *stamp) { return -1; }
    static int pqext_look(const char *path, int64_t *stamp) { return -1; }
    static int pqext_pread(int number, char *out, int64_t length, int64_t offset) { return -1; }
    static void pqext_close(int number) { }
    #else
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <unistd.h>
    #define PQEXT_OPENS_FILES 1
    #if defined(__APPLE__)
    #define PQEXT_MODIFIED st_mtimespec
    #define PQEXT_CHANGED st_ctimespec
    #else
    #define PQEXT_MODIFIED st_mtim
    #define PQEXT_CHANGED st_ctim
    #endif
    #define PQEXT_NANOSECONDS(time) ((int64_t) (time).tv_sec * 1000000000 + (int64_t) (time).tv_nsec)

    static int pqext_told(const struct stat *found, int64_t *stamp) {
        if (!S_ISREG(found->st_mode)) return -1;
        stamp[0] = (int64_t) found->st_size;
        stamp[1] = PQEXT_NANOSECONDS(found->PQEXT_MODIFIED);
        stamp[2] = PQEXT_NANOSECONDS(found->PQEXT_CHANGED);
        return 0;
    }

    /* Size of a regular file, when it was written, and when it or its name last changed; -1 for all else. */
    static int pqext_stamp(int number, int64_t *stamp) {
        struct stat found;
        return fstat(number, &found) != 0 ? -1 : pqext_told(&found, stamp);
    }

    /* The same of the file at a path, which is not opened. */
    static int pqext_look(const char *path, int64_t *stamp) {
        struct stat found;
        return stat(path, &found) != 0 ? -1 : pqext_told(&found, stamp);
    }

    /* The number of a regular file opened for reading; a pipe is not waited for. */
    static int pqext_open(const char *path, int64_t *stamp) {
        int number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (number >= 0 && pqext_stamp(number, stamp) != 0) {
            close(number);
            number = -1;
        }
        return number;
    }

    static int pqext_pread(int number, char *out, int64_t length, int64_t offset) {
        return pread(number, out, (size_t) length, (off_t) offset) == (ssize_t) length ? 0 : -1;
    }

    static void pqext_close(int number) { close(number); }
    #endif
    """
    enum: PQEXT_OPENS_FILES
    int pqext_open(const char *path, int64_t *stamp)
    int pqext_stamp(int number, int64_t *stamp)
    int pqext_look(const char *path, int64_t *stamp)
    int pqext_pread(int number, char *out, int64_t length, int64_t offset)
    void pqext_close(int number)

cdef enum:
    HEAD = 4

cdef struct Place:
    const char *path
    int number
    int64_t stamp[3]
    char head[HEAD]
    char *tail
    int64_t length


cdef class LocalFile:
    """Open file: its size and time of the last change, its first bytes, and its last bytes in `tail`."""

    cdef int number
    cdef readonly int64_t size
    cdef readonly int64_t mtime_ns
    cdef readonly bytes head
    cdef readonly bytes tail

    def __cinit__(self):
        self.number = -1

    def __dealloc__(self):
        if self.number >= 0:
            pqext_close(self.number)

    def fileno(self):
        """Return the file descriptor or handle of the open file."""
        if self.number < 0:
            raise ValueError("I/O operation on closed file")
        return self.number

    def close(self):
        """Close the file, unless it is closed."""
        cdef int number = self.number
        self.number = -1
        if number >= 0:
            pqext_close(number)


cdef void open_all(Place *places, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        places[i].number = pqext_open(places[i].path, places[i].stamp)


cdef void read_all(Place *places, Py_ssize_t count) noexcept nogil:
    """Read the ends of all files, and close files that were modified meanwhile or cannot be read."""
    cdef Py_ssize_t i
    cdef int64_t stamp[3]
    cdef Place *one
    for i in range(count):
        one = &places[i]
        if one.number < 0:
            continue
        if (
            pqext_pread(one.number, one.tail, one.length, one.stamp[0] - one.length) != 0
            or (one.stamp[0] > one.length and pqext_pread(one.number, one.head, HEAD, 0) != 0)
            or pqext_stamp(one.number, stamp) != 0
            or stamp[0] != one.stamp[0] or stamp[1] != one.stamp[1]
        ):
            pqext_close(one.number)
            one.number = -1


def open_files(list paths not None, int64_t tail_bytes):
    """Open the files at `paths`, as bytes, and read the last `tail_bytes` of each. Return None for unopened files.

    A file is not opened if it is not a regular file, is shorter than the format allows, is being written, or causes an
    error: the caller opens it again to report the reason. No file is opened on Windows.
    """
    cdef Py_ssize_t count = len(paths), i
    cdef Place *places
    cdef LocalFile file
    cdef bytes path
    cdef list found = [None] * count
    if not PQEXT_OPENS_FILES or not count:
        return found
    if tail_bytes < HEAD:
        raise ValueError("the tail size is smaller than the end of a footer")
    places = <Place *> calloc(count, sizeof(Place))
    if places == NULL:
        raise MemoryError
    try:
        for i in range(count):
            places[i].number = -1
        for i in range(count):
            path = paths[i]
            if b"\0" in path:
                raise ValueError("embedded null byte")
            places[i].path = PyBytes_AS_STRING(path)
        with nogil:
            open_all(places, count)
        for i in range(count):
            if places[i].number < 0:
                continue
            file = LocalFile.__new__(LocalFile)
            file.size, file.mtime_ns = places[i].stamp[0], places[i].stamp[1]
            if file.size < HEAD:
                pqext_close(places[i].number)
                places[i].number = -1
                continue
            places[i].length = min(tail_bytes, file.size)
            file.tail = PyBytes_FromStringAndSize(NULL, places[i].length)
            places[i].tail = PyBytes_AS_STRING(file.tail)
            found[i] = file
            file.number = places[i].number  # `file` now owns the descriptor
        with nogil:
            read_all(places, count)
        for i in range(count):
            file = found[i]
            if file is not None and places[i].number < 0:
                file.number = -1
                found[i] = None
        for i in range(count):
            file = found[i]
            if file is None:
                continue
            if file.size > places[i].length:
                file.head = PyBytes_FromStringAndSize(places[i].head, HEAD)
            else:
                file.head = file.tail[:HEAD]
    except BaseException:
        for i in range(count):
            if found[i] is None and places[i].number >= 0:
                pqext_close(places[i].number)
        raise
    finally:
        free(places)
    return found


def stamp_files(list paths, int64_t[::1] sizes, int64_t[::1] modified_ns, int64_t[::1] changed_ns):
    """Write the size of each file, and the times of its last modification and last status change, in nanoseconds.

    The size is -1 if it is unknown: for anything except a regular file, and always on Windows.
    """
    cdef Py_ssize_t i, count = len(paths)
    cdef int64_t stamp[3]
    cdef const char **names
    if sizes.shape[0] < count or modified_ns.shape[0] < count or changed_ns.shape[0] < count:
        raise ValueError("the outputs must have room for all files")
    for path in paths:
        if type(path) is not bytes or b"\0" in path:
            raise ValueError("paths must be bytes without null bytes")
    names = <const char **> calloc(max(count, 1), sizeof(char *))
    if names == NULL:
        raise MemoryError()
    try:
        for i in range(count):
            names[i] = PyBytes_AS_STRING(<object> paths[i])
        with nogil:
            for i in range(count):
                if pqext_look(names[i], stamp) != 0:
                    stamp[0], stamp[1], stamp[2] = -1, 0, 0
                sizes[i], modified_ns[i], changed_ns[i] = stamp[0], stamp[1], stamp[2]
    finally:
        free(names)
