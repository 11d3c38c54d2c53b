#!/usr/bin/env bash
# Builds llama.cpp's Vulkan backend, as one library that the installed CPU build of llama-cpp-python loads, and prints
# the folder that holds it. It is built once (4 to 10 minutes on two cores) and kept below the user's cache folder.
#
# Needs cmake, a C++ compiler and Debian's packages glslc libvulkan-dev spirv-headers mesa-vulkan-drivers (the last one has
# the software driver that the tests run on), and installs them where it may. Exits with 3 and a line on stderr where
# something of that cannot be had. With --where it only prints the folder.
set -euo pipefail

version=0.3.36
cache=${HOMEAI_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/homeai-tests}/vulkan-$version
if [ "${1:-}" = --where ] || [ -e "$cache/libggml-vulkan.so" ]; then
  echo "$cache"
  exit 0
fi

lack() {
  echo "$1" >&2
  exit 3
}
if ! command -v glslc >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { apt-get update -qq && apt-get install -y -qq cmake ninja-build glslc libvulkan-dev spirv-headers mesa-vulkan-drivers; } >&2 ||
    lack "the packages glslc, libvulkan-dev, spirv-headers, mesa-vulkan-drivers could not be installed"
fi
for program in cmake c++ glslc python3; do
  command -v "$program" >/dev/null || lack "$program is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip download --quiet --no-deps --no-build-isolation --no-binary llama-cpp-python "llama-cpp-python==$version" >&2 ||
  python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python "llama-cpp-python==$version" >&2 ||
  lack "the sources of llama-cpp-python $version could not be had"
tar xzf ./*.tar.gz

# Older Vulkan headers (Debian 12's) lack one extension that the backend names; it is used only where a driver has it.
# The C++ header is not included here: the backend does that itself, after it has said how calls are to be made.
cat >layer_settings.h <<'HEADER'
#pragma once
#ifdef __cplusplus
#include <vector>
#include <vulkan/vulkan_core.h>
#ifndef VK_EXT_layer_settings
namespace vk {
enum class LayerSettingTypeEXT { eBool32 = 0, eInt32 = 1, eInt64 = 2, eUint32 = 3, eUint64 = 4, eFloat32 = 5, eFloat64 = 6, eString = 7 };
struct LayerSettingEXT {
    const char *pLayerName; const char *pSettingName; LayerSettingTypeEXT type; uint32_t valueCount; const void *pValues;
};
struct LayerSettingsCreateInfoEXT {
    VkStructureType sType = static_cast<VkStructureType>(1000496000);
    const void *pNext = nullptr; uint32_t settingCount; const LayerSettingEXT *pSettings;
    LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT> &settings)
        : settingCount(static_cast<uint32_t>(settings.size())), pSettings(settings.data()) {}
};
}
#endif
#endif
HEADER

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
nice -n 19 cmake -S ./llama_cpp_python-*/vendor/llama.cpp -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-include $work/layer_settings.h" -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_CPU=OFF \
  -DGGML_VULKAN=ON -DGGML_NATIVE=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF >&2
nice -n 19 cmake --build build --target ggml-vulkan -j 2 >&2
mkdir -p "$cache"
# Moved over at last, so that a build that was broken off is not taken for a whole one.
cp "$(find build -name 'libggml-vulkan.so' | head -1)" "$cache/.new.so"
mv "$cache/.new.so" "$cache/libggml-vulkan.so"
echo "$cache"
