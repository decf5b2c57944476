/* Runs the model on files of raw tensors: every input, then every output, as the model names them. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text with names in it: terminals obey bytes that are not printable ASCII, so these are shown as their codes. */
static void show(const char *text) {
    for (; *text; text++)
        if (*text >= ' ' && *text <= '~') fputc(*text, stderr);
        else fprintf(stderr, "\\x%02x", (unsigned)(unsigned char)*text);
}

static int complain(const char *message) {
    fputs("error: ", stderr);
    show(message);
    fputc('\n', stderr);
    return 2;
}

static int complain_of(unsigned long sample, const char *message) {
    fprintf(stderr, "error: sample %lu: ", sample);
    show(message);
    fputc('\n', stderr);
    return 2;
}

static void show_file(const model_tensor *tensor) {
    fputc(' ', stderr);
    show(tensor->name);
    fputs(".bin", stderr);
}

static int usage(const char *program) {
    int i;
    fputs("usage: ", stderr);
    show(program);
    fputs(" [--device COMMAND] [--folder DIR] [--feed OUTPUT=INPUT]...", stderr);
    for (i = 0; i < MODEL_INPUTS; i++) show_file(&model_inputs[i]);
    for (i = 0; i < MODEL_OUTPUTS; i++) show_file(&model_outputs[i]);
    fprintf(stderr, "\nfiles hold samples one after the other, little-endian; COMMAND speaks the pipe protocol;\n"
            "an input that is fed takes that output of the sample before, and its file's first sample, or zeros, at first\n");
    return 2;
}

/* How an output goes into an input: `rows` pieces, the last `bytes` of each `step` bytes of it. */
typedef struct { size_t rows, bytes, step; } slide;

/* The output is as the input is, or longer along one axis: a cache, of which the last positions go in. 0 where it is not. */
static int slide_of(const model_tensor *output, const model_tensor *input, slide *found) {
    const char *given = output->shape, *wanted = input->shape;
    found->rows = 1;
    if (!input->bytes || strcmp(output->dtype, input->dtype)) return 0;
    while (strcmp(given, wanted)) {
        char *next, *other;
        const unsigned long long size = strtoull(given, &next, 10), taken = strtoull(wanted, &other, 10);
        if (next == given || other == wanted || size < taken || (size > taken && strcmp(next, other))) return 0;
        if (size > taken) break;
        found->rows *= (size_t)size;
        given = next + strspn(next, ", ");
        wanted = other + strspn(other, ", ");
    }
    found->bytes = input->bytes / found->rows;
    found->step = output->bytes / found->rows;
    return 1;
}

static void feed_back(const model_tensor *output, const model_tensor *input, const char *from, char *to) {
    slide by;
    size_t row;
    if (!slide_of(output, input, &by)) return;
    for (row = 0; row < by.rows; row++) memcpy(to + row * by.bytes, from + (row + 1) * by.step - by.bytes, by.bytes);
}

/* Notes in `feeds`, by input, the output that is fed back into it; -1 stands for none. */
static int feed(int *feeds, const char *text) {
    const char *mark = strchr(text, '=');
    int output, input;
    slide by;
    if (!mark) return complain("a feed must be OUTPUT=INPUT");
    for (output = 0; output < MODEL_OUTPUTS; output++) {
        const char *name = model_outputs[output].name;
        if (strlen(name) == (size_t)(mark - text) && !strncmp(name, text, (size_t)(mark - text))) break;
    }
    for (input = 0; input < MODEL_INPUTS && strcmp(model_inputs[input].name, mark + 1); input++) {}
    if (output == MODEL_OUTPUTS || input == MODEL_INPUTS) return complain("a feed must name an output and an input of the model");
    if (feeds[input] >= 0) return complain("an input must be fed by one output");
    if (!slide_of(&model_outputs[output], &model_inputs[input], &by))
        return complain("an output must have the dtype and shape of the input that it is fed back into, or more along one axis");
    feeds[input] = output;
    return 0;
}

/* A value of a data type: a number of words, then these words. Returns the bytes that were read; all is well where the
 * next sample begins behind them. */
static size_t read_value(FILE *file, void **buffer) {
    int64_t words;
    if (fread(&words, 1, 8, file) != 8 || words < 0 || words > (INT64_C(1) << 40)) return 0;
    free(*buffer);
    *buffer = malloc(8 * ((size_t)words + 1));
    if (!*buffer) return 0;
    memcpy(*buffer, &words, 8);
    return fread((char *)*buffer + 8, 8, (size_t)words, file) == (size_t)words;
}

/* Fills the inputs of one sample: returns 1 where there is none left, 0, or 2 after a complaint. */
static int next_sample(FILE **files, void **buffers, const int *feeds, unsigned long sample) {
    int i, ended = 0, whole = 0;
    for (i = 0; i < MODEL_INPUTS; i++) {
        const size_t bytes = model_inputs[i].bytes;
        size_t got;
        if (feeds[i] >= 0 && sample) {
            feed_back(&model_outputs[feeds[i]], &model_inputs[i], buffers[MODEL_INPUTS + feeds[i]], buffers[i]);
            continue;
        }
        if (!bytes) {
            const int next = fgetc(files[i]);
            if (next != EOF) ungetc(next, files[i]);
            if (next != EOF && !read_value(files[i], &buffers[i])) ended = whole = 1;
            else *(next != EOF ? &whole : &ended) = 1;
            continue;
        }
        got = fread(buffers[i], 1, bytes, files[i]);
        if (feeds[i] >= 0 && got == 0) memset(buffers[i], 0, bytes);
        else if (got != 0 && got != bytes) ended = whole = 1;
        else if (feeds[i] < 0) *(got ? &whole : &ended) = 1;
    }
    return ended && whole ? complain("inputs must hold the same number of whole samples") : ended;
}

/* How many values of a float tensor are NaN: all bits of the exponent are set, and one behind them. */
static unsigned long count_nan(const model_tensor *tensor, const unsigned char *data) {
    const size_t width = !strcmp(tensor->dtype, "float16") ? 2 : !strcmp(tensor->dtype, "float32") ? 4
                         : !strcmp(tensor->dtype, "float64") ? 8 : 0;
    const uint64_t infinity = width == 2 ? 0x7C00u : width == 4 ? 0x7F800000u : UINT64_C(0x7FF) << 52;
    unsigned long found = 0;
    size_t at;
    for (at = 0; width && at < tensor->bytes; at += width) {
        uint64_t bits = 0;
        memcpy(&bits, data + at, width);
        found += (bits & ~(UINT64_C(1) << (8 * width - 1))) > infinity;
    }
    return found;
}

static int run(rhw_context *c, FILE **files, void **buffers, const int *feeds, unsigned long *samples, unsigned long *nan) {
    for (*samples = 0;; ++*samples) {
        int i, end = next_sample(files, buffers, feeds, *samples);
        if (end) return end == 1 ? 0 : end;
        if (model_run(c, (const void *const *)buffers, buffers + MODEL_INPUTS)) return complain_of(*samples, c->error);
        for (i = 0; i < MODEL_OUTPUTS; i++) nan[i] += count_nan(&model_outputs[i], buffers[MODEL_INPUTS + i]);
        for (i = 0; i < MODEL_OUTPUTS; i++)
            if (fwrite(buffers[MODEL_INPUTS + i], 1, model_outputs[i].bytes, files[MODEL_INPUTS + i]) != model_outputs[i].bytes)
                return complain("outputs must be writable");
    }
}

int main(int argc, char **argv) {
    const char *command = NULL, *folder = ".";
    FILE *files[MODEL_INPUTS + MODEL_OUTPUTS];
    void *buffers[MODEL_INPUTS + MODEL_OUTPUTS];
    rhw_device device = {0};
    rhw_context context;
    unsigned long samples = 0, nan[MODEL_OUTPUTS] = {0};
    int i, at = 1, status, fed = 0, feeds[MODEL_INPUTS];
    for (i = 0; i < MODEL_INPUTS; i++) feeds[i] = -1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--device")) command = argv[at + 1];
        else if (!strcmp(argv[at], "--folder")) folder = argv[at + 1];
        else if (strcmp(argv[at], "--feed")) return usage(argv[0]);
        else if (feed(feeds, argv[at + 1])) return 2;
        else fed++;
    }
    if (fed && fed == MODEL_INPUTS) return complain("an input must be left that is not fed: its samples are counted");
    if (argc - at != MODEL_INPUTS + MODEL_OUTPUTS || (model.program_count && !command)) return usage(argv[0]);
    for (i = 0; i < MODEL_INPUTS + MODEL_OUTPUTS; i++) {
        files[i] = fopen(argv[at + i], i < MODEL_INPUTS ? "rb" : "wb");
        buffers[i] = malloc(i < MODEL_INPUTS ? model_inputs[i].bytes + 8 : model_outputs[i - MODEL_INPUTS].bytes);
        if (!files[i] || !buffers[i]) return complain(argv[at + i]);
    }
    if (command && rhw_pipe_open(&device, command)) return complain("the device command must start");
    status = rhw_open(&context, &model, device, folder) ? complain(context.error) : run(&context, files, buffers, feeds, &samples, nan);
    rhw_close(&context);
    if (command) rhw_pipe_close(&device);
    for (i = 0; i < MODEL_INPUTS + MODEL_OUTPUTS; i++) {
        if (fclose(files[i]) && !status) status = complain(argv[at + i]);
        free(buffers[i]);
    }
    for (i = 0; i < MODEL_OUTPUTS; i++)
        if (nan[i]) {
            fputs("warning: output ", stderr);
            show(model_outputs[i].name);
            fprintf(stderr, ": %lu values are NaN\n", nan[i]);
        }
    if (!status) printf("%lu sample(s), %llu cycles\n", samples, (unsigned long long)context.cycles);
    return status;
}
