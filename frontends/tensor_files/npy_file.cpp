#include "frontends/tensor_files/npy_file.h"

#include <algorithm>
#include <cstring>

#include "frontends/tensor_files/convert_layout.h"
#include "frontends/tensor_files/mapped_file.h"
#include "frontends/tensor_files/npy.h"

namespace tilewright {

namespace {

Result<HostTensor> decode(std::span<const uint8_t> file) {
  TW_ASSIGN(const size_t length,
            npy_header_length(file.first(std::min(file.size(), kNpyPrefixBytes))));
  if (length > file.size()) return invalid("npy header is truncated");
  TW_ASSIGN(NpyHeader npy, parse_npy_header(file.first(length)));
  const std::span<const uint8_t> data = file.subspan(length);
  if (npy.data_bytes != data.size())
    return invalid("npy array has " + std::to_string(data.size()) + " bytes of data, shape " +
                   to_string(npy.shape) + " of " + std::string(name(npy.dtype)) + " needs " +
                   std::to_string(npy.data_bytes));
  HostTensor tensor(npy.dtype, std::move(npy.shape));
  if (!data.empty()) std::memcpy(tensor.bytes.data(), data.data(), data.size());
  if (npy.big_endian) swap_byte_order(tensor);
  if (npy.fortran_order) fortran_to_row_major(tensor);
  normalize_bools(tensor);
  return tensor;
}

}  // namespace

Result<HostTensor> read_npy(const std::filesystem::path& path) {
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto tensor = decode(file->bytes());
  if (!tensor.ok() && tensor.error().location.empty()) tensor.error().location = path.string();
  return tensor;
}

}  // namespace tilewright
