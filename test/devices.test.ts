import { describe, expect, it } from 'vitest';
import { deviceFailure, deviceFor, deviceMissing } from '../src/devices.js';

// What the runtime really says (onnxruntime-node 1.30).
const NO_ADAPTER =
  'adapter_result.status == wgpu::RequestAdapterStatus::Success was false. Failed to get a WebGPU adapter: No supported adapters\n';
const NO_CUDA = 'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library';
const TOO_LARGE =
  'WebGPU validation failed. Buffer size (4294967280) exceeds the max buffer size limit (1073741824).\n - While calling [Device].CreateBuffer([BufferDescriptor]).';
const OUT_OF_MEMORY = 'WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.';

describe('errors of devices', () => {
  it.each([
    [
      'webgpu',
      NO_ADAPTER,
      /^device: there is no device webgpu on this machine, expected a graphics card with a driver for Vulkan/,
    ],
    ['cuda', NO_CUDA, /^device: there is no device cuda on this machine, expected an NVIDIA card/],
  ] as const)('%s that is not there says what to install', (device, message, sentence) => {
    expect(deviceMissing(device, new Error(message))?.message).toMatch(sentence);
  });

  it('that are none are left as they are', () => {
    expect(deviceMissing('webgpu', new Error('This is an invalid model. Type Error: …'))).toBeUndefined();
    expect(deviceMissing('cpu', new Error(NO_ADAPTER))).toBeUndefined();
    expect(deviceFailure('cpu', new Error(OUT_OF_MEMORY))).toBeUndefined();
  });

  it.each([
    [TOO_LARGE, /has no room for this program, whose largest buffer has 1073741824 bytes: what was saved is intact/],
    [OUT_OF_MEMORY, /has no room for this program: what was saved is intact/],
    ['Device was lost: driver reset', /was lost: what was saved is intact, go on from it with --device cpu/],
    ['Non-zero status code\nmore', /failed \(Non-zero status code\): what was saved is intact/],
  ])('in the middle of the work are one sentence: %s', (message, sentence) => {
    expect(deviceFailure('webgpu', new Error(message))?.message).toMatch(sentence);
  });
});

it('auto is the CPU for a small model, and where there is no card', () => {
  expect(deviceFor('auto', 10_000)).toBe('cpu');
  const before = process.env.VK_ICD_FILENAMES;
  process.env.VK_ICD_FILENAMES = '/usr/lib/chromium/vk_swiftshader_icd.json';
  // A card in software is none.
  expect(deviceFor('auto', 1e9)).toBe('cpu');
  if (before === undefined) delete process.env.VK_ICD_FILENAMES;
  else process.env.VK_ICD_FILENAMES = before;
  expect(deviceFor('webgpu', 10)).toBe('webgpu');
});
