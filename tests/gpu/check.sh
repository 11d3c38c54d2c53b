#!/usr/bin/env bash
# Verifies offload, probes and phases on a machine with a GPU, in under 8 minutes and without a network.
#
#   tests/gpu/check.sh pack      here, with a network: collects into .gpu/ what the other machine lacks (46 MB)
#   tests/gpu/check.sh           there, in the same tree: runs the check; its exit code says whether all holds
#   CUDA=1 tests/gpu/check.sh    there, with nvcc: builds the CUDA backend first (sm_90 only; about 3 minutes of 16 cores,
#                                which are kept in build/: a second run goes on where the first was stopped)
#
# Without CUDA=1 the GPU is used through Vulkan, which needs the maker's Vulkan driver there. The pieces are: the engine's
# package as it is installed here, the Vulkan backend that build_vulkan.sh makes, wheels for the other machine's Python
# (PYTHON_VERSION, 3.12), the Vulkan loader, and ggml's sources. The model is made on the spot.
set -euo pipefail
cd "$(dirname "$0")/../.."
pack=$PWD/.gpu

if [ "${1:-}" = pack ]; then
  rm -rf "$pack"
  mkdir -p "$pack"/{site,backends,wheels,debs}
  cp "$(bash tests/gpu/build_vulkan.sh)/libggml-vulkan.so" "$pack/backends/"
  python=${PYTHON:-.venv/bin/python}
  package=$("$python" -c 'import importlib.util as u; print(next(iter(u.find_spec("llama_cpp").submodule_search_locations)))')
  cp -r "$package" "$package"/../llama_cpp_python-*.dist-info "$pack/site/"
  # Each library is there under three names; the loader goes by the one with the single digit, the bindings by none.
  find "$pack/site/llama_cpp/lib" -name '*.so.*.*' -delete
  rm -rf "$pack/site/llama_cpp/server" "$pack/site/llama_cpp/__pycache__" "$pack/site/llama_cpp/lib/"libmtmd*
  python3 -m pip download --quiet --only-binary :all: --no-deps --dest "$pack/wheels" \
    --python-version "${PYTHON_VERSION:-3.12}" --implementation cp --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_12_x86_64 \
    --platform manylinux2010_x86_64 msgspec psutil nvidia-ml-py platformdirs jinja2 markupsafe \
    typing-extensions
  # The maker's Vulkan driver is linked with the loaders of OpenGL and of X11, which machines without a screen may lack.
  loaders=(libvulkan1 libglvnd0 libegl1 libglx0 libgl1 libx11-6 libxext6 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0)
  (cd "$pack/debs" && apt-get download -qq "${loaders[@]}") || echo "the other machine needs ${loaders[*]}" >&2
  sources=$(mktemp -d)
  python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$sources" llama-cpp-python==0.3.36
  tar xzf "$sources"/*.tar.gz -C "$sources"
  tar czf "$pack/ggml.tar.gz" -C "$sources"/llama_cpp_python-*/vendor/llama.cpp ggml
  rm -rf "$sources"
  # 64 MiB is what goes over in one piece, with the tree itself, which is smaller than 8.
  du -sh "$pack"
  [ "$(du -sm "$pack" | cut -f1)" -le 56 ] || echo "too large to carry in one piece" >&2
  exit
fi

[ -d "$pack/site" ] || { echo "there is no .gpu/: run tests/gpu/check.sh pack where there is a network" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --root-user-action=ignore --no-index --no-deps --no-compile --target "$work/site" \
  "$pack"/wheels/*.whl || {
  echo "the wheels do not fit this Python ($(python3 -V)): pack again with PYTHON_VERSION=" >&2
  exit 2
}
for deb in "$pack"/debs/*.deb; do [ -e "$deb" ] && dpkg -x "$deb" "$work/debs"; done
export PYTHONPATH=$work/site:$pack/site:$PWD PYTHONDONTWRITEBYTECODE=1
export HOMEAI_STATE_DIR=$work/state HOMEAI_DATA_DIR=$work/data HOMEAI_CACHE_DIR=$work/cache HOMEAI_CONFIG_DIR=$work/config
export LD_LIBRARY_PATH=$work/debs/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
# The driver's description of itself lies elsewhere in some containers.
icd=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
if [ -e "$icd" ]; then export VK_DRIVER_FILES=$icd; fi
export VK_LOADER_DEBUG=error # why it takes no driver, for the engine's log

export HOMEAI_BACKENDS_DIR=$pack/backends
if [ "${CUDA:-}" = 1 ]; then
  command -v nvcc cmake || { echo "CUDA=1 needs nvcc and cmake here" >&2; exit 2; }
  build=$PWD/build/gpu-cuda
  mkdir -p "$build"
  tar xzf "$pack/ggml.tar.gz" -C "$build" --skip-old-files
  # The sources are those of llama.cpp's copy: without a project above it, ggml wants files that only its own has.
  printf 'cmake_minimum_required(VERSION 3.18)\nproject(backend C CXX)\nadd_subdirectory(ggml)\n' >"$build/CMakeLists.txt"
  generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  # cuBLAS may be there as a Python package only, which has no names for the linker.
  cublas=()
  kit=$(python3 -c 'import glob, sys; print(next((f for p in sys.path for f in glob.glob(p + "/nvidia/*/include/cublas_v2.h")), ""))')
  if [ -n "$kit" ] && ! find -L "$(dirname "$(command -v nvcc)")/.." /usr/local/cuda -name 'libcublas.so' 2>/dev/null | grep -q .; then
    kit=${kit%/include/cublas_v2.h}
    mkdir -p "$build/cublas"
    for name in cublas cublasLt; do
      ln -sf "$(find "$kit/lib" -name "lib$name.so.*" | head -1)" "$build/cublas/lib$name.so"
      cublas+=("-DCUDA_${name}_LIBRARY=$build/cublas/lib$name.so")
    done
    cublas+=("-DCMAKE_CUDA_FLAGS=-I$kit/include" "-DCMAKE_CXX_FLAGS=-I$kit/include")
    export LD_LIBRARY_PATH=$kit/lib:$LD_LIBRARY_PATH
  fi
  # Without its own virtual memory management it needs no driver to be linked with.
  cmake -S "$build" -B "$build/out" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DGGML_BACKEND_DL=ON -DGGML_CPU=OFF -DGGML_CUDA=ON -DGGML_CUDA_NCCL=OFF -DGGML_CUDA_NO_VMM=ON -DGGML_NATIVE=OFF \
    -DCMAKE_CUDA_ARCHITECTURES=90-real "${cublas[@]}" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
  cmake --build "$build/out" --target ggml-cuda -j "$(nproc)" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
  mkdir "$work/backends"
  find "$build/out" -name 'libggml-cuda.so' -exec cp {} "$work/backends/" \;
  export HOMEAI_BACKENDS_DIR=$work/backends
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv || true
timeout 420 python3 tests/gpu/check.py
