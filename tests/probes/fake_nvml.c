/* Stands in for libnvidia-ml.so.1: the functions that homeai's probe calls through nvidia-ml-py, for up to four GPUs.
 *
 * The file named by FAKE_NVML is read at each call. Its lines, the last that fits wins:
 *
 *     gpus 2                              how many there are (1)
 *     nvmlDeviceGetPowerUsage error 3     every GPU answers with this error
 *     nvmlDeviceGetPowerUsage@1 error 3   GPU 1 does
 *     nvmlDeviceGetPowerUsage value 7 8   the answer's numbers, in the order of its C structure
 *     nvmlDeviceGetPowerUsage block       does not return while the line is there (20 s at most)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int uint;
typedef unsigned long long u64;

static int started;

struct told {
    int error, blocks, values;
    u64 value[4];
};

static struct told ask(const char *function, int gpu) {
    struct told told = {0};
    char line[512], name[128], action[32], exact[160];
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return told;
    snprintf(exact, sizeof exact, "%s@%d", function, gpu);
    while (fgets(line, sizeof line, file)) {
        int used = 0;
        if (sscanf(line, "%127s %31s %n", name, action, &used) < 2) continue;
        if (strcmp(name, function) && strcmp(name, exact) && strcmp(name, "*")) continue;
        memset(&told, 0, sizeof told);
        char *rest = line + used, *end;
        if (!strcmp(action, "error")) told.error = atoi(rest);
        if (!strcmp(action, "block")) told.blocks = 1;
        if (!strcmp(action, "value"))
            for (; told.values < 4; rest = end) {
                u64 number = strtoull(rest, &end, 0);
                if (end == rest) break;
                told.value[told.values++] = number;
            }
    }
    fclose(file);
    return told;
}

static struct told obey(const char *function, int gpu) {
    struct told told = ask(function, gpu);
    for (int i = 0; told.blocks && i < 2000; i++) {
        usleep(10000);
        told = ask(function, gpu);
    }
    if (!started && !told.error && strcmp(function, "nvmlInitWithFlags")) told.error = 1;
    return told;
}

#define TOLD(gpu) struct told told = obey(__func__, gpu); if (told.error) return told.error
#define OR(index, usual) (told.values > index ? told.value[index] : (u64)(usual))
#define GPU(handle) ((int)(long)(handle) - 1)

int nvmlInitWithFlags(uint flags) { (void)flags; TOLD(-1); started = 1; return 0; }
int nvmlShutdown(void) { started = 0; return 0; }

int nvmlDeviceGetCount_v2(uint *count) {
    TOLD(-1);
    char line[128];
    FILE *file = getenv("FAKE_NVML") ? fopen(getenv("FAKE_NVML"), "r") : NULL;
    *count = 1;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "gpus %u", count);
    if (file) fclose(file);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(uint index, void **handle) {
    TOLD((int)index);
    *handle = (void *)(long)(index + 1);
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, uint length) { TOLD(-1); snprintf(text, length, "580.65.06"); return 0; }

int nvmlDeviceGetName(void *gpu, char *text, uint length) {
    TOLD(GPU(gpu));
    snprintf(text, length, "Fake RTX %d", 4000 + GPU(gpu));
    return 0;
}

int nvmlDeviceGetUUID(void *gpu, char *text, uint length) {
    TOLD(GPU(gpu));
    snprintf(text, length, "GPU-%d2345678-aaaa-bbbb-cccc-0123456789ab", GPU(gpu));
    return 0;
}

int nvmlDeviceGetPciInfo_v3(void *gpu, void *out) {
    TOLD(GPU(gpu));
    struct { char legacy[16]; uint domain, bus, device, id, subsystem; char bus_id[32]; } info = {0};
    snprintf(info.bus_id, sizeof info.bus_id, "00000000:%02X:00.0", 0xA1 + GPU(gpu));
    memcpy(out, &info, sizeof info);
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *gpu, uint *out) {
    TOLD(GPU(gpu));
    out[0] = OR(0, 73), out[1] = OR(1, 41);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *gpu, u64 *out) {
    TOLD(GPU(gpu));
    out[0] = OR(0, 24ull << 30), out[1] = OR(1, 20ull << 30), out[2] = OR(2, 4ull << 30);
    return 0;
}

#define ONE_NUMBER(name, type, usual) \
    int name(void *gpu, type *out) { TOLD(GPU(gpu)); *out = (type)OR(0, usual); return 0; }
#define ONE_NUMBER_OF(name, type, usual) \
    int name(void *gpu, uint of, type *out) { (void)of; TOLD(GPU(gpu)); *out = (type)OR(0, usual); return 0; }

ONE_NUMBER(nvmlDeviceGetPowerUsage, uint, 250000)
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, 450000)
ONE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, 123456789)
ONE_NUMBER(nvmlDeviceGetFanSpeed, uint, 55)
ONE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, 0)
ONE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, 0)
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, 4)
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, 16)
ONE_NUMBER_OF(nvmlDeviceGetTemperature, uint, 61)
ONE_NUMBER_OF(nvmlDeviceGetClockInfo, uint, 2520)
ONE_NUMBER_OF(nvmlDeviceGetPcieThroughput, uint, 1000)

struct process { uint pid; u64 held; uint gpu_instance, compute_instance; };

static int list(const char *function, void *gpu, uint *count, struct process *out) {
    /* value PID BYTES PID BYTES */
    struct told told = obey(function, GPU(gpu));
    if (told.error) return told.error;
    uint n = told.values / 2, room = *count;
    *count = n;
    if (!n) return 0;
    if (room < n || !out) return 7;
    for (uint i = 0; i < n; i++) {
        struct process one = {(uint)told.value[2 * i], told.value[2 * i + 1], ~0u, ~0u};
        out[i] = one;
    }
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, uint *count, struct process *out) {
    return list(__func__, gpu, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *gpu, uint *count, struct process *out) {
    return list(__func__, gpu, count, out);
}
