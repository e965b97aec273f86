import { describeOnDevice } from './software.js';

// Every operation with its gradient, in f32 on the device and on the CPU: `checkGradient` compares these two.
describeOnDevice('on a device', async () => {
  process.env.TEST_DEVICE = 'webgpu';
  await import('../tensor/gradients.test.js');
});
