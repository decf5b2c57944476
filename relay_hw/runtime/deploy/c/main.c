/* Runs the model on files of raw tensors: every input, then every output, as the model names them. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const char *message) {
    fprintf(stderr, "error: %s\n", message);
    return 2;
}

static int usage(const char *program) {
    int i;
    fprintf(stderr, "usage: %s [--device COMMAND] [--folder DIR]", program);
    for (i = 0; i < MODEL_INPUTS; i++) fprintf(stderr, " %s.bin", model_inputs[i].name);
    for (i = 0; i < MODEL_OUTPUTS; i++) fprintf(stderr, " %s.bin", model_outputs[i].name);
    fprintf(stderr, "\nfiles hold samples one after the other, little-endian; COMMAND speaks the pipe protocol\n");
    return 2;
}

static int run(rhw_context *c, FILE **files, void **buffers, unsigned long *samples) {
    for (*samples = 0;; ++*samples) {
        int i;
        for (i = 0; i < MODEL_INPUTS; i++) {
            size_t got = fread(buffers[i], 1, model_inputs[i].bytes, files[i]);
            if (got == 0 && i == 0) return 0;
            if (got != model_inputs[i].bytes) return complain("inputs must hold the same number of whole samples");
        }
        if (model_run(c, (const void *const *)buffers, buffers + MODEL_INPUTS)) return complain(c->error);
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
    unsigned long samples = 0;
    int i, at = 1, status;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--device")) command = argv[at + 1];
        else if (!strcmp(argv[at], "--folder")) folder = argv[at + 1];
        else return usage(argv[0]);
    }
    if (argc - at != MODEL_INPUTS + MODEL_OUTPUTS || (model.program_count && !command)) return usage(argv[0]);
    for (i = 0; i < MODEL_INPUTS + MODEL_OUTPUTS; i++) {
        files[i] = fopen(argv[at + i], i < MODEL_INPUTS ? "rb" : "wb");
        buffers[i] = malloc(i < MODEL_INPUTS ? model_inputs[i].bytes : model_outputs[i - MODEL_INPUTS].bytes);
        if (!files[i] || !buffers[i]) return complain(argv[at + i]);
    }
    if (command && rhw_pipe_open(&device, command)) return complain("the device command must start");
    status = rhw_open(&context, &model, device, folder) ? complain(context.error) : run(&context, files, buffers, &samples);
    rhw_close(&context);
    if (command) rhw_pipe_close(&device);
    for (i = 0; i < MODEL_INPUTS + MODEL_OUTPUTS; i++) {
        if (fclose(files[i]) && !status) status = complain(argv[at + i]);
        free(buffers[i]);
    }
    if (!status) printf("%lu sample(s), %llu cycles\n", samples, (unsigned long long)context.cycles);
    return status;
}
